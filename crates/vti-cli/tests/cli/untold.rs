//! Columns that are left out are said to be, everywhere; what a column of one value can still say is kept.

use crate::support::Scratch;

/// Where `seen` is missing, the response is larger; what is there of it is all the same.
fn table() -> String {
    let row = |i: usize| {
        let (seen, more) = if i.is_multiple_of(2) { ("yes", 0) } else { ("", 9) };
        format!("{},{seen},{},same,id{i}\n", i % 3 + more, i % 5)
    };
    format!("y,seen,other,constant,name\n{}", (0..60).map(row).collect::<String>())
}

#[test]
fn of_a_column_of_one_value_it_matters_where_it_is_missing() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table());
    let select = ["select", "t.csv", "--response", "y", "--missing", "indicator", "--out", "run"];
    let found = scratch.fine(&select);
    let line = "left out seen: it is constant, every cell that is there is yes; seen_missing says where it is missing";
    assert!(found.talk.contains(line), "{}", found.talk);
    let summary = scratch.json("run/summary.json");
    assert!(summary["inclusion"]["seen_missing"]["exact"].as_f64().unwrap() > 0.999, "{summary}");
    assert!(summary["inclusion"].get("seen").is_none());
    // Predictions know it as well, and only it: 1 on average where it is there, 10 where it is not.
    scratch.write("new.csv", "seen,other\nyes,2\n,2\n");
    let predicted = scratch.fine(&["predict", "run", "new.csv"]).data;
    let means: Vec<f64> =
        predicted.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!((means[0] - 1.0).abs() < 0.2 && (means[1] - 10.0).abs() < 0.2, "{predicted}");
}

#[test]
fn columns_that_are_left_out_are_in_the_summary_and_on_the_page() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table());
    scratch.fine(&["select", "t.csv", "--response", "y", "--missing", "indicator", "--out", "run"]);
    let left_out = scratch.json("run/summary.json")["data"]["left_out"].clone();
    let columns: Vec<&str> = left_out.as_array().unwrap().iter().map(|one| one["column"].as_str().unwrap()).collect();
    assert_eq!(columns, ["constant", "name", "seen"]);
    let page = scratch.read("run/report.html");
    assert!(page.contains("3 columns were left out") && page.contains("<li>constant: it is constant"), "no list");
    let numbers: String = (0..30).map(|i| format!("{},{},1\n", i * 7 % 11, i * i % 13)).collect();
    scratch.write("n.csv", format!("a,b,c\n{numbers}"));
    scratch.fine(&["dag", "n.csv", "--sem", "linear", "--out", "graph"]);
    let left_out = scratch.json("graph/summary.json")["data"]["left_out"].clone();
    assert_eq!(left_out[0]["column"], "c");
    assert!(scratch.read("graph/report.html").contains("1 column was left out"));
    // Nothing is said where nothing was.
    scratch.write("all.csv", format!("a,b,c\n{}", numbers.replace(",1\n", ",2\n").replacen(",2\n", ",3\n", 4)));
    scratch.fine(&["dag", "all.csv", "--sem", "linear", "--out", "all"]);
    assert!(scratch.json("all/summary.json")["data"].get("left_out").is_none());
}
