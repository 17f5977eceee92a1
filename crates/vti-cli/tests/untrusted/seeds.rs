//! The examples that are in the repository, made by the program itself: `VTI_UPDATE=1` makes them anew.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use vti::answer::{SampledModel, Samples};
use vti_report::files::draws_parquet;

/// Writes all examples where that is wanted.
pub(crate) fn update(folder: &dyn Fn(&str) -> PathBuf) {
    if std::env::var_os("VTI_UPDATE").is_none() {
        return;
    }
    let scratch = std::env::temp_dir().join(format!("vti-untrusted-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let put = |reader: &str, name: &str, bytes: &[u8]| {
        std::fs::create_dir_all(folder(reader)).unwrap();
        std::fs::write(folder(reader).join(name), bytes).unwrap();
    };
    for (name, bytes) in vti_cli::untrusted::checkpoints(&scratch).unwrap() {
        put("checkpoint", name, &bytes);
    }
    texts(&put);
    tables(&put);
    runs(&scratch, &put);
    std::fs::remove_dir_all(scratch).unwrap();
}

type Put<'a> = dyn Fn(&str, &str, &[u8]) + 'a;

const CSV: [(&str, &str); 9] = [
    ("plain", "y,x1,x2\n1,2,3\n2,3,5\n4,1,8\n3,3,3\n7,5,4\n6,2,1\n"),
    ("semicolons", "y;x1;x2\n1,5;2;3\n2,25;3;5\n4;1;8\n3;3;3\n"),
    ("tabs", "y\tx 1\tx2\n1\t2\t3\n2\t3\t5\n4\t1\t8\n"),
    ("missing", "y,a,b\n1,NA,x\n2,3,\n,1,y\n3,?,x\n7,5,y\n6,2,x\n5,5,.\n"),
    ("categories", "y,group,sure\n1,a,true\n2,b,false\n4,a,true\n3,c,false\n7,b,true\n6,c,true\n"),
    (
        "dates",
        "y,day,time\n1,2024-02-29,2024-02-29T12:30:00Z\n2,2023-01-01,2023-01-01 00:00:00\n4,1969-12-31,1970-01-01T23:59:60\n3,2000-01-01,2001-01-01\n",
    ),
    ("index", ",y,x\n0,1,2\n1,2,3\n2,4,1\n3,3,3\n4,7,5\n"),
    ("quoted", "\"y\",\"a, \"\"b\"\"\",c\n1,\"2\",\"x\ny\"\n2,3,z\n4,1,=1+1\n"),
    ("constant", "\u{feff}y,a,id\r\n1,2,p\r\n2,2,q\r\n4,2,r\r\n3,2,s\r\n"),
];

/// Examples that are written by hand.
fn texts(put: &Put<'_>) {
    for (name, text) in CSV {
        put("csv", name, text.as_bytes());
    }
    let graphs = [
        ("edges", "from,to\na,b\nb,a b\n"),
        ("cycle", "from,to\na,b\nb,a\na,b\n"),
        ("more", "to;weight;from\nb;1;a\n\u{e4};2;\"a b\"\n"),
        ("loop", "from,to\na,a\n"),
        ("gap", "from,to\na,\n"),
    ];
    let points = [
        ("selection", "sigma,intercept,x1,x2,x3\n1,0.5,,2,\n2,0,1,,3\n0.5,1,,,\n"),
        ("impossible", "sigma,intercept,x1,x2,x3\n-1,0.5,,2,\n1e-300,1e300,,,\n"),
        ("graphs", "word,x1: sigma,x2: sigma,x3: sigma,x1->x2,x1->x3,x2->x1,x2->x3,x3->x1,x3->x2\n,1,1,1,0.5,,,,,\n"),
    ];
    let arguments = [
        (
            "select",
            "select\nt.csv\n--response\ny\n--likelihood\nrobust:0.1,2,3\n--prior\nhyper-g:3\n--model-prior\nbeta-binomial:1,2\n",
        ),
        (
            "missing",
            "select\n-\n--response=y\n--missing\nindicator\n--missing-values=-9,x\n--categorical\na,b\n--always\nc\n",
        ),
        ("dag", "dag\nt.csv\n--require\na->b,b->c\n--forbid\nc\u{2192}a\n--tiers\na;b,c\n--noise\n0.5\n--log=a,b\n"),
        ("set", "dag\nt.csv\n--set\ntrain.batch=8\n--time-limit\n1h30m\n--out\nx.vti\n"),
    ];
    let set = [
        ("numbers", "train.batch=8\ncheck.draws=1e3\nflow.kind=affine\nflow.layers=2\nflow.blocks=1\nflow.hidden=4\n"),
        ("texts", "problem.response=z\nproblem.prior={kind=\"normal\",scale=2}\nmodels.kind=categorical\n"),
        ("nested", "check.chains.chains=4\nproblem.include=[\"a\",\"b\"]\noutput.raw_csv=true\n"),
        ("wrong", "train.bacth=1\n"),
    ];
    for (reader, texts) in [("graph", &graphs[..]), ("points", &points), ("arguments", &arguments), ("set", &set)] {
        texts.iter().for_each(|(name, text)| put(reader, name, text.as_bytes()));
    }
    for (name, text) in [
        ("select", include_str!("../../src/commands/select.toml")),
        ("dag", include_str!("../../src/commands/dag.toml")),
    ] {
        put("config", name, text.as_bytes());
    }
    put("manifest", "lock", br#"{"process":12,"host":"a","boot":"0f","process_start":34}"#);
}

/// Examples that are packed.
fn tables(put: &Put<'_>) {
    let text = CSV[0].1.repeat(8);
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    put("packed", "gzip", &gzip(text.as_bytes()));
    put("packed", "gzip-twice", &[gzip(text.as_bytes()), gzip(text.as_bytes())].concat());
    put("packed", "gzip-bomb", &gzip(&vec![b'1'; 1 << 20]));
    put("packed", "zstd", &zstd::stream::encode_all(text.as_bytes(), 19).unwrap());
    put("packed", "zstd-bomb", &zstd::stream::encode_all(&vec![b'1'; 1 << 20][..], 19).unwrap());
    let codecs = [
        ("plain", Compression::UNCOMPRESSED),
        ("snappy", Compression::SNAPPY),
        ("gzip", Compression::GZIP(GzipLevel::default())),
        ("brotli", Compression::BROTLI(BrotliLevel::default())),
        ("lz4", Compression::LZ4),
        ("lz4-raw", Compression::LZ4_RAW),
        ("zstd", Compression::ZSTD(ZstdLevel::default())),
    ];
    for (name, codec) in codecs {
        put("parquet", name, &parquet_table(codec));
    }
    let model =
        |word: &str, active: &[bool]| SampledModel { word: word.into(), label: word.into(), active: active.into() };
    let numbers = vec![-1.5, 0.25];
    let samples = Samples {
        names: ["sigma", "intercept", "x1"].map(String::from).to_vec(),
        models: vec![model("1", &[true; 3]), model("0", &[true, true, false])],
        model: vec![0, 1],
        values: vec![1.0, 2.0, 3.0, 1.5, 2.5, f64::NAN],
        log_q: numbers.clone(),
        log_target: numbers.clone(),
        log_weight: numbers,
    };
    let schema = |term: &str| -> serde_json::Value {
        let terms = format!(r#"[{{"name":"x1","always":false,"type":{term}}}]"#);
        let text = format!(r#"{{"response":"y","response_levels":null,"terms":{terms},"columns":["y","x1"]}}"#);
        serde_json::from_str(&text).unwrap()
    };
    for (name, term) in [
        ("number", r#"{"kind":"number"}"#),
        ("categories", r#"{"kind":"categories","levels":["a","b"]}"#),
        ("none", r#"{"kind":"categories","levels":[]}"#),
    ] {
        put("draws", name, &draws_parquet(&samples, Some(&schema(term))).unwrap());
    }
}

/// Numbers, truth values, texts, missing values and times.
fn parquet_table(codec: Compression) -> Vec<u8> {
    let schema = "message t { required double y; optional double a; required boolean b; required binary c (UTF8);
        required int64 t (TIMESTAMP(NANOS, true)); }";
    let properties = WriterProperties::builder().set_compression(codec).set_statistics_enabled(EnabledStatistics::None);
    let (schema, properties) = (Arc::new(parse_message_type(schema).unwrap()), Arc::new(properties.build()));
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! write {
        ($kind:ty, $values:expr, $present:expr) => {{
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$kind>().write_batch(&$values, $present, None).unwrap();
            column.close().unwrap();
        }};
    }
    write!(DoubleType, [1.0, 2.5, 4.0, 3.0, 7.0, 6.0].repeat(2), None);
    write!(DoubleType, [2.0, 3.0, 1.0, 5.0].repeat(2), Some(&[1, 1, 0, 1, 0, 1].repeat(2)));
    write!(BoolType, [true, false, true, true, false, false].repeat(2), None);
    write!(
        ByteArrayType,
        ["p", "q", "p", "q", "r", "p"].repeat(2).into_iter().map(ByteArray::from).collect::<Vec<_>>(),
        None
    );
    write!(Int64Type, [0, 86_400_000_000_000, 5, 7, -1, 9].repeat(2), None);
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

/// What runs of the real program write.
fn runs(dir: &Path, put: &Put<'_>) {
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    let run = |arguments: &[&str]| {
        let status = Command::new(env!("CARGO_BIN_EXE_vti")).args(arguments).current_dir(dir).output().unwrap();
        assert!(status.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
    };
    run(&["simulate", "correlated", "--rows", "12", "--covariates", "2", "--relevant", "1", "--out", "s.csv"]);
    run(&["simulate", "linear-dag", "--rows", "12", "--nodes", "3", "--out", "d.csv", "--truth-out", "g.csv"]);
    let train = ["--set", "train.steps=3", "--set", "train.batch=8", "--set", "check.draws=100", "--check", "none"];
    let select = ["select", "s.csv", "--response", "y"];
    run(&[&select[..], &["--out", "exact.vti"]].concat());
    run(&[&select[..], &["--method", "vti", "--out", "learned.vti"], &train].concat());
    run(&["dag", "d.csv", "--sem", "linear", "--truth", "g.csv", "--out", "graphs.vti"]);
    for name in ["exact", "learned", "graphs"] {
        let file = |file: &str| read(&format!("{name}.vti/{file}"));
        let summary: serde_json::Value = serde_json::from_slice(&file("summary.json")).unwrap();
        // Without the spaces, and without what takes most room.
        put("summary", name, serde_json::to_string(&summary).unwrap().as_bytes());
        put("config", name, &file("config.toml"));
        put("manifest", name, &file("vti-run.json"));
    }
    put("progress", "learned", &read("learned.vti/progress.jsonl"));
}
