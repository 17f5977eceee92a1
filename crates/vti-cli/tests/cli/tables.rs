//! Tables as people have them: missing values, columns that say nothing, dates, packed files, standard input.

use std::io::Write;
use std::process::Stdio;
use std::sync::Arc;

use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use parquet::data_type::DoubleType;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::support::{Outcome, Scratch, number};

/// Cells of the rows of a small table: three covariates and a response.
fn cells(row: usize) -> [String; 4] {
    let noise = (row * 5) % 3;
    [row * 3 % 17, (row * 7) % 5, (row * row) % 11, 2 * (row * 3 % 17) + noise].map(|cell| cell.to_string())
}

/// Twenty rows under `a,b,c,y`, with some cells changed.
fn table(change: impl Fn(usize, &mut [String; 4])) -> String {
    let row = |row: usize| {
        let mut cells = cells(row);
        change(row, &mut cells);
        cells.join(",") + "\n"
    };
    std::iter::once("a,b,c,y\n".to_string()).chain((0..20).map(row)).collect()
}

/// The exact answer about a file.
fn exact<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["select", file, "--response", "y", "--method", "exact", "--out", "run", "--force"][..], more].concat()
}

fn inclusion(scratch: &Scratch) -> serde_json::Value {
    scratch.json("run/summary.json")["inclusion"].clone()
}

fn names(scratch: &Scratch) -> Vec<String> {
    inclusion(scratch).as_object().unwrap().keys().cloned().collect()
}

#[test]
fn missing_values_are_counted_by_column_all_at_once() {
    let scratch = Scratch::new();
    let words = ["", "NA", "N/A", "na", "NaN", ".", "?"];
    scratch.write(
        "t.csv",
        table(|row, cells| {
            if row < words.len() {
                cells[1] = words[row].into();
            }
            if row == 9 {
                cells[2] = "NA".into();
            }
        }),
    );
    let parts =
        ["8 values are missing in 2 columns, the first in line 2: b 7, c 1", "--missing drop leaves out the 8 rows"];
    scratch.refused(&exact("t.csv", &[]), &parts);
    scratch.refused(&exact("t.csv", &[]), &["12 remain", "--missing indicator", "--exclude b,c"]);
    // Rows of columns that do not take part are whole.
    scratch.fine(&exact("t.csv", &["--exclude", "b,c"]));
    let all = |row: usize, cells: &mut [String; 4]| {
        cells[1 + row % 3] = "NA".into();
    };
    scratch.write("t.csv", table(all));
    scratch.refused(&exact("t.csv", &["--missing", "drop"]), &["each of the 20 rows has a missing value"]);
}

#[test]
fn dropping_rows_is_the_same_as_taking_them_out_of_the_file() {
    let scratch = Scratch::new();
    let whole: String = table(|_, _| {})
        .lines()
        .enumerate()
        .filter(|(line, _)| ![4, 8].contains(line))
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    scratch.write("whole.csv", whole);
    scratch.write(
        "t.csv",
        table(|row, cells| match row {
            3 => cells[0] = "NA".into(),
            7 => cells[3] = "?".into(),
            _ => {}
        }),
    );
    scratch.fine(&exact("whole.csv", &[]));
    let expected = inclusion(&scratch);
    let outcome = scratch.fine(&exact("t.csv", &["--missing", "drop"]));
    assert!(outcome.talk.contains("left out 2 of 20 rows, which have missing values: a 1, y 1"), "{}", outcome.talk);
    assert_eq!(inclusion(&scratch), expected);
    // The same by a configuration, and with words of one's own, which are numbers if they look so.
    let named = table(|row, cells| match row {
        3 => cells[0] = "-99.0".into(),
        7 => cells[3] = "x".into(),
        _ => {}
    });
    scratch.write("named.csv", named);
    scratch.fine(&exact("named.csv", &["--missing", "drop", "--missing-values", "-99,x"]));
    assert_eq!(inclusion(&scratch), expected);
    let head = "[problem]\nkind = \"select\"\ndata = \"named.csv\"\nresponse = \"y\"\n";
    scratch.write("c.toml", format!("{head}missing = \"drop\"\nmissing_values = [\"-99\", \"x\"]\n"));
    scratch.fine(&["fit", "c.toml", "--out", "run", "--force"]);
    assert_eq!(inclusion(&scratch), expected);
    // And by the exact answer alone.
    let found = scratch.fine(&["enumerate", "t.csv", "--response", "y", "--missing", "drop", "--json"]);
    assert!(found.talk.contains("left out 2 of 20 rows"), "{}", found.talk);
    let found: serde_json::Value = serde_json::from_str(&found.data).unwrap();
    assert!((number(&found["inclusion"]["b"]) - number(&expected["b"]["exact"])).abs() < 1e-9);
}

#[test]
fn indicators_say_where_values_were_missing() {
    let scratch = Scratch::new();
    let missing = |row: usize| row % 6 == 2;
    scratch.write(
        "t.csv",
        table(|row, cells| {
            if missing(row) {
                cells[1] = "NA".into();
            }
        }),
    );
    let mean = (0..20).filter(|row| !missing(*row)).map(|row| (row * 7 % 5) as f64).sum::<f64>() / 17.0;
    // The same by hand.
    let by_hand: String = (0..20)
        .map(|row| {
            let [a, b, c, y] = cells(row);
            let b = if missing(row) { mean.to_string() } else { b };
            format!("{a},{b},{},{c},{y}\n", u8::from(missing(row)))
        })
        .collect();
    scratch.write("hand.csv", format!("a,b,b_missing,c,y\n{by_hand}"));
    scratch.fine(&exact("hand.csv", &[]));
    let expected = inclusion(&scratch);
    scratch.write("new.csv", format!("a,b,b_missing,c\n1,{mean},1,2\n1,3,0,2\n"));
    let predicted = scratch.fine(&["predict", "run", "new.csv"]).data;
    let outcome = scratch.fine(&exact("t.csv", &["--missing", "indicator"]));
    assert!(
        outcome.talk.contains("b: 3 missing values are replaced by the mean, and b_missing says where"),
        "{}",
        outcome.talk
    );
    for name in ["a", "b", "b_missing", "c"] {
        let [found, expected] = [&inclusion(&scratch), &expected].map(|all| number(&all[name]["exact"]));
        assert!((found - expected).abs() < 1e-9, "{name}");
    }
    scratch.write("new.csv", "b,a,c\nNA,1,2\n3,1,2\n");
    let found = scratch.fine(&["predict", "run", "new.csv"]).data;
    let numbers = |text: &str| -> Vec<f64> {
        text.lines()
            .skip(1)
            .flat_map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect::<Vec<f64>>())
            .collect()
    };
    for (found, expected) in numbers(&found).iter().zip(numbers(&predicted)) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    // A column that was whole in training has no mean to stand for it.
    scratch.write("new.csv", "b,a,c\nNA,NA,2\n3,1,2\n");
    let outcome = scratch.fine(&["predict", "run", "new.csv"]);
    assert!(outcome.data.contains("\n1,,,,,\n2,"), "{}", outcome.data);
    assert!(
        outcome.talk.contains("1 of 2 rows have no prediction") && outcome.talk.contains("a 1 (missing)"),
        "{}",
        outcome.talk
    );
    scratch.write("clash.csv", scratch.read("t.csv").replacen("a,b,c", "b_missing,b,c", 1));
    scratch.refused(
        &exact("clash.csv", &["--missing", "indicator"]),
        &["there is a column b_missing already", "rename it"],
    );
}

#[test]
fn graphs_drop_rows_or_refuse() {
    let scratch = Scratch::new();
    scratch.write(
        "t.csv",
        table(|row, cells| {
            if row == 4 {
                cells[2] = "NA".into();
            }
        }),
    );
    let dag = ["dag", "t.csv", "--sem", "linear", "--out", "run"];
    scratch.refused(&dag, &["1 values are missing in 1 columns, the first in line 6: c 1", "--missing drop"]);
    let outcome = scratch.fine(&[&dag[..], &["--missing", "drop"]].concat());
    assert!(outcome.talk.contains("left out 1 of 20 rows, which have missing values: c 1"), "{}", outcome.talk);
    assert_eq!(scratch.json("run/summary.json")["data"]["rows"], 19);
    scratch.refused(&[&dag[..], &["--missing", "indicator"]].concat(), &["invalid value", "error, drop"]);
    scratch.write("c.toml", "[problem]\nkind = \"dag\"\ndata = \"t.csv\"\nmissing = \"indicator\"\n");
    scratch.refused(&["fit", "c.toml"], &["not for graphs", "missing = \"drop\" in [problem]"]);
}

#[test]
fn columns_that_say_nothing_are_left_out_with_a_line_each() {
    let scratch = Scratch::new();
    let rows: String = (0..20)
        .map(|row| format!("{row},p{row},7,2024-{:02}-{:02},,{}\n", 1 + row % 12, 1 + row, cells(row).join(",")))
        .collect();
    for index in ["", "Unnamed: 0"] {
        scratch.write("t.csv", format!("{index},id,same,when,void,a,b,c,y\n{rows}"));
        let lines = [
            "it has no name and numbers or names the rows",
            "left out id: it is an identifier, its 20 texts are all different",
            "left out same: it is constant, every cell is 7",
            "left out void: it is empty",
            "when: dates are read as days since 1970-01-01",
        ];
        let told = |outcome: &Outcome| {
            for line in lines {
                assert!(outcome.talk.contains(line), "{line}: {}", outcome.talk);
            }
        };
        told(&scratch.fine(&exact("t.csv", &[])));
        assert_eq!(names(&scratch), ["a", "b", "c", "when"]);
        told(&scratch.fine(&["enumerate", "t.csv", "--response", "y"]));
        told(&scratch.fine(&["dag", "t.csv", "--sem", "linear", "--out", "graph", "--force"]));
        assert_eq!(scratch.json("graph/summary.json")["data"]["nodes"], 5);
    }
    // New rows need nothing of what was left out, and have dates as well.
    scratch.write("new.csv", "a,b,c,when,more\n1,2,3,2024-05-06,x\n1,2,3,soon,x\n1,2,3,17,x\n");
    let outcome = scratch.fine(&["predict", "run", "new.csv"]);
    assert!(
        outcome.talk.contains("2 of 3 rows have no prediction") && outcome.talk.contains("when 2 (not a number)"),
        "{}",
        outcome.talk
    );
    // Who asks for such a column by name is told.
    let asked = ["--always", "same", "--include", "id,a"];
    let parts = [
        "2 columns cannot be used as they are",
        "column id has 20 different texts",
        "column same is constant",
        "--exclude id,same",
    ];
    scratch.refused(&exact("t.csv", &asked), &parts);
}

#[test]
fn days_are_counted_from_1970() {
    let scratch = Scratch::new();
    let row =
        |row: usize| format!("20{:02}-02-{:02}T12:00:00Z,{},{}\n", 10 + row, 1 + row, row * 7 % 5, row + row * 5 % 3);
    scratch.write("t.csv", std::iter::once("when,b,y\n".to_string()).chain((0..14).map(row)).collect::<String>());
    scratch.fine(&exact("t.csv", &[]));
    let found = scratch.json("run/summary.json")["coefficients"]["when"].clone();
    // Days of 1 February 2010 to 14 February 2023 at noon.
    let days = [14641, 15007, 15373, 15740, 16106, 16472, 16838, 17205, 17571, 17937, 18303, 18670, 19036, 19402];
    let row = |row: usize| format!("{}.5,{},{}\n", days[row], row * 7 % 5, row + row * 5 % 3);
    scratch.write("days.csv", std::iter::once("when,b,y\n".to_string()).chain((0..14).map(row)).collect::<String>());
    scratch.fine(&exact("days.csv", &[]));
    let expected = scratch.json("run/summary.json")["coefficients"]["when"].clone();
    assert!((number(&found["exact"]) - number(&expected["exact"])).abs() < 1e-12, "{found} {expected}");
}

#[test]
fn all_flaws_of_columns_come_at_once() {
    let scratch = Scratch::new();
    scratch.write(
        "t.csv",
        table(|row, cells| match row {
            3 => cells[0] = "l2".into(),
            5 => cells[2] = "inf".into(),
            _ => {}
        }),
    );
    let parts = [
        "2 columns cannot be used",
        "line 5, column a: \"l2\" is not a number",
        "line 7, column c: inf is not finite",
        "--exclude a,c",
        "--categorical a",
    ];
    scratch.refused(&exact("t.csv", &[]), &parts);
    scratch.refused(
        &["dag", "t.csv"],
        &["2 columns cannot be used", "column a: \"l2\"", "column c: inf", "--exclude a,c"],
    );
}

/// Runs with something on standard input.
fn with_input(scratch: &Scratch, arguments: &[&str], input: &[u8]) -> Outcome {
    let mut command = scratch.command(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    Outcome::of(&child.wait_with_output().unwrap(), arguments)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn packed_tables_and_standard_input_are_the_same_tables() {
    let scratch = Scratch::new();
    let plain = table(|_, _| {}).into_bytes();
    scratch.write("t.csv", &plain);
    scratch.fine(&exact("t.csv", &[]));
    let expected = inclusion(&scratch);
    let [zipped, zstd] = [gzip(&plain), zstd::stream::encode_all(&plain[..], 3).unwrap()];
    // By their first bytes, whatever they are called.
    for (name, bytes) in [("t.csv.gz", &zipped), ("t.csv.zst", &zstd), ("u.csv", &zipped), ("v.csv", &zstd)] {
        scratch.write(name, bytes);
        scratch.fine(&exact(name, &[]));
        assert_eq!(inclusion(&scratch), expected, "{name}");
    }
    for input in [&plain, &zipped, &zstd] {
        let outcome = with_input(&scratch, &exact("-", &[]), input);
        assert_eq!(outcome.code, Some(0), "{}", outcome.talk);
        assert_eq!(inclusion(&scratch), expected);
    }
    let found = with_input(&scratch, &["predict", "run", "-"], &plain).data;
    assert_eq!(found, scratch.fine(&["predict", "run", "t.csv"]).data);
    // What a run was made of is given again.
    let again = with_input(&scratch, &["sample", "run", "-n", "3"], &plain);
    assert_eq!((again.code, again.data.lines().count()), (Some(0), 4), "{}", again.talk);
    let other = with_input(&scratch, &["sample", "run", "-n", "3"], &plain[..plain.len() - 9]);
    assert!(other.talk.contains("the data have changed"), "{}", other.talk);
    with_input(&scratch, &["select", "-", "--response", "y"], &plain);
    assert!(scratch.path("stdin.vti/summary.json").exists());
    scratch.write("cut.csv.gz", &zipped[..zipped.len() / 2]);
    scratch.refused(&exact("cut.csv.gz", &[]), &["cut.csv.gz: cannot be unpacked (gzip)", "cut short"]);
}

#[test]
fn parquet_of_every_codec_is_read() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table(|_, _| {}));
    scratch.fine(&exact("t.csv", &[]));
    let expected = inclusion(&scratch);
    let schema = Arc::new(
        parse_message_type("message t { required double a; required double b; required double c; required double y; }")
            .unwrap(),
    );
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ] {
        let properties = Arc::new(WriterProperties::builder().set_compression(codec).build());
        let mut bytes = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut bytes, schema.clone(), properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        for place in 0..4 {
            let values: Vec<f64> = (0..20).map(|row| cells(row)[place].parse().unwrap()).collect();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<DoubleType>().write_batch(&values, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        writer.close().unwrap();
        scratch.write("t.parquet", &bytes);
        scratch.fine(&exact("t.parquet", &[]));
        assert_eq!(inclusion(&scratch), expected, "{codec:?}");
    }
}

#[test]
fn a_hundred_thousand_columns_and_a_name_of_a_megabyte() {
    let scratch = Scratch::new();
    let columns = 100_000;
    let header: Vec<String> = (0..columns).map(|i| format!("x{i}")).collect();
    let mut text = format!("y,{}\n", header.join(","));
    for row in 0..200_usize {
        text += &(row % 7 + row / 50).to_string();
        for column in 0..columns {
            text.push(',');
            text.push(char::from(b'0' + ((row * (column % 97 + 3) + row * row / 7 + column) % 10) as u8));
        }
        text.push('\n');
    }
    scratch.write("wide.csv", &text);
    scratch.fine(&exact("wide.csv", &["--include", "x1,x2,x99999"]));
    scratch.refused(&exact("wide.csv", &[]), &["too few for 100000 columns with the g-prior"]);
    let short = |outcome: &Outcome| {
        assert_eq!(outcome.code, Some(2));
        assert!(
            outcome.talk.len() < 1500 && outcome.talk.lines().all(|line| line.len() < 800),
            "{}",
            outcome.talk.len()
        );
    };
    short(&scratch.run(&exact("wide.csv", &["--include", "z1"])));
    scratch.write("twice.csv", text.replacen("x1,", "x0,", 1));
    scratch.refused(&exact("twice.csv", &[]), &["columns 2 and 3 are both called x0"]);
    scratch.write("holes.csv", text.replacen(",1", ",", 50_000));
    short(&scratch.run(&exact("holes.csv", &[])));
    let name = "n".repeat(1_000_000);
    for header in [format!("{name},b,c,y"), format!("{name},{name},c,y"), format!("{name}z,{name},c,yy")] {
        scratch.write("long.csv", table(|_, cells| cells[0] = "l".into()).replacen("a,b,c,y", &header, 1));
        short(&scratch.run(&exact("long.csv", &["--include", "z"])));
    }
    scratch.write(
        "long.csv",
        table(|row, cells| {
            if row == 3 {
                cells[0] = "NA".into();
            }
        })
        .replacen("a,b", &format!("{name},b"), 1),
    );
    short(&scratch.run(&exact("long.csv", &[])));
}

#[test]
fn control_characters_and_formulas_do_no_harm() {
    let scratch = Scratch::new();
    let evil = "=cmd|'/c calc'!A1";
    scratch.write("t.csv", table(|_, _| {}).replacen("a,b,c", &format!("{evil},b\x1b[31m,@c"), 1));
    let outcome = scratch.fine(&exact("t.csv", &[]));
    assert!(!outcome.talk.contains('\x1b') && !outcome.data.contains('\x1b'));
    assert!(outcome.data.contains("b\\u{1b}[31m"), "{}", outcome.data);
    let refused = scratch.run(&exact("t.csv", &["--include", "b\x1b[31n"]));
    assert!(refused.talk.contains("did you mean b\\u{1b}[31m?") && !refused.talk.contains('\x1b'), "{}", refused.talk);
    let header = |data: &str| -> Vec<String> {
        csv::Reader::from_reader(data.as_bytes()).headers().unwrap().iter().map(String::from).collect()
    };
    let draws = scratch.fine(&["sample", "run", "-n", "5"]).data;
    let guarded = header(&draws);
    assert!(guarded.contains(&format!("'{evil}")) && guarded.contains(&"'@c".to_string()), "{guarded:?}");
    let raw = header(&scratch.fine(&["sample", "run", "-n", "5", "--raw-csv"]).data);
    assert!(raw.contains(&evil.to_string()) && raw.contains(&"@c".to_string()), "{raw:?}");
    // Numbers below 0 are no formulas, and points are found again by either name.
    scratch.write("points.csv", &draws);
    assert_eq!(scratch.fine(&["log-prob", "run", "points.csv"]).data.lines().count(), 6);
    let edges = |more: &[&str]| {
        scratch.fine(&[&["dag", "t.csv", "--sem", "linear", "--out", "graph", "--force"][..], more].concat());
        scratch.read("graph/edges.csv")
    };
    assert!(edges(&[]).contains("'=cmd") && edges(&[]).contains("'@c"));
    assert!(!edges(&["--raw-csv"]).contains("'=cmd") && !edges(&["--raw-csv"]).contains("'@c"));
}
