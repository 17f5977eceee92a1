//! Tables that are small as files and large in memory, and times of the finest kind.

use std::io::Write;
use std::sync::Arc;

use parquet::data_type::{DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::support::{Outcome, Scratch};

/// A run that may unpack so many bytes.
fn with_limit(scratch: &Scratch, limit: &str, arguments: &[&str]) -> Outcome {
    Outcome::of(&scratch.command(arguments).env("VTI_MAX_UNPACKED", limit).output().unwrap(), arguments)
}

#[test]
fn what_unpacks_to_more_than_allowed_is_refused() {
    let scratch = Scratch::new();
    let rows: String = (0..20).map(|row| format!("{},{},{}\n", row * 7 % 11, row * row % 13, row * 3 % 5)).collect();
    let table = format!("y,a,b\n{rows}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(table.as_bytes()).unwrap();
    scratch.write("t.csv.gz", gzip.finish().unwrap());
    scratch.write("t.csv.zst", zstd::stream::encode_all(table.as_bytes(), 3).unwrap());
    scratch.write("t.parquet", parquet(&[1.0, 2.0, 4.0, 3.0], &[0, 1, 2, 3], "MICROS"));
    let enough = table.len().to_string();
    for (file, codec) in [("t.csv.gz", "gzip"), ("t.csv.zst", "zstd"), ("t.parquet", "Parquet")] {
        let arguments = ["enumerate", file, "--response", "y"];
        let outcome = with_limit(&scratch, "60", &arguments);
        assert_eq!(outcome.code, Some(2), "{}", outcome.talk);
        let message = format!("{file}: unpacks ({codec}) to more than 60 bytes");
        assert!(outcome.talk.contains(&message) && outcome.talk.contains("VTI_MAX_UNPACKED=BYTES"), "{}", outcome.talk);
        let outcome = with_limit(&scratch, &enough, &arguments);
        assert!(!outcome.talk.contains("unpacks"), "{}", outcome.talk);
    }
    let outcome = with_limit(&scratch, "much", &["enumerate", "t.csv.gz", "--response", "y"]);
    assert!(outcome.talk.contains("VTI_MAX_UNPACKED=much: a number of bytes is needed"), "{}", outcome.talk);
}

/// A response and times in this unit.
fn parquet(response: &[f64], times: &[i64], unit: &str) -> Vec<u8> {
    let schema = format!("message t {{ required double y; required int64 day (TIMESTAMP({unit}, true)); }}");
    let (schema, properties) =
        (Arc::new(parse_message_type(&schema).unwrap()), Arc::new(WriterProperties::builder().build()));
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<DoubleType>().write_batch(response, None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(times, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    bytes
}

/// pandas writes times in nanoseconds: they are days as those in other units are.
#[test]
fn times_in_nanoseconds_are_dates_as_well() {
    let scratch = Scratch::new();
    let response: Vec<f64> = (0..12).map(|row| f64::from(row * 5 % 7)).collect();
    let found = ["MILLIS", "MICROS", "NANOS"].map(|unit| {
        let part = match unit {
            "MILLIS" => 1,
            "MICROS" => 1_000,
            _ => 1_000_000,
        };
        let times: Vec<i64> = (0..12).map(|row| row * row * 43_200_000 * part).collect();
        scratch.write("t.parquet", parquet(&response, &times, unit));
        let outcome = scratch.fine(&["select", "t.parquet", "--response", "y", "--out", "run", "--force"]);
        assert!(outcome.talk.contains("day: dates are read as days since 1970-01-01"), "{}", outcome.talk);
        scratch.json("run/summary.json")["coefficients"].clone()
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
}
