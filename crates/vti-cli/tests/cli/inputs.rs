//! Bad inputs: each has a message of its own, which names the place and says what to do.

use crate::support::{SMALL, Scratch, fixture, select};

/// Twelve rows of three covariates and a response, with one line changed.
fn table(change: impl Fn(usize, &str) -> String) -> String {
    let rows = (0..12).map(|i| format!("{},{},{},{}", i, (i * 7) % 5, (i * i) % 11, 2 * i + (i * 5) % 3));
    let lines = std::iter::once("a,b,c,y".to_string()).chain(rows);
    lines.enumerate().map(|(number, line)| change(number + 1, &line) + "\n").collect()
}

fn changed(line: usize, content: &'static str) -> String {
    table(|number, old| if number == line { content.into() } else { old.into() })
}

fn refused(content: impl AsRef<[u8]>, more: &[&str], parts: &[&str]) {
    let scratch = Scratch::new();
    scratch.write("t.csv", content);
    scratch.refused(&select("t.csv", "y", more), parts);
}

#[test]
fn files_that_are_no_tables() {
    let scratch = Scratch::new();
    scratch.refused(&select("nowhere.csv", "y", &[]), &["nowhere.csv: ", "hint: check the path"]);
    scratch.refused(&select("builtin:iris", "y", &[]), &["no built-in data called iris", "prostate, hald"]);
    scratch.write("t.xlsx", "PK");
    scratch.refused(&select("t.xlsx", "y", &[]), &["neither a CSV nor a Parquet file", "hint: name it .csv"]);
    scratch.write("t.parquet", "a,b,y\n1,2,3\n");
    scratch.refused(&select("t.parquet", "y", &[]), &["t.parquet: not a Parquet file"]);
    refused("", &[], &["t.csv: the file is empty", "hint: the first line"]);
    refused("\n\n", &[], &["the file is empty"]);
    refused("a,b,y\n", &[], &["no rows below"]);
    refused(b"a,b,y\n1,2,3\n4,\xff,6\n", &[], &["line 3 is not UTF-8", "hint: save the file as UTF-8"]);
    refused(changed(5, "1,2,3"), &[], &["line 5 has 3 cells, but there are 4 columns"]);
    refused(changed(5, "1,2,3,4,5"), &[], &["line 5 has 5 cells"]);
}

#[test]
fn names_that_do_not_fit() {
    refused(changed(1, "a,b,a,y"), &[], &["columns 1 and 3 are both called a", "hint: rename"]);
    refused(changed(1, "a,,c,y"), &[], &["column 2 has no name"]);
    refused(changed(1, "a,b,intercept,y"), &[], &["cannot be called intercept", "--exclude intercept"]);
    refused(changed(1, "a,b,c,yield"), &[], &["there is no column y, which is the response", "did you mean yield?"]);
    for option in ["--include", "--always", "--exclude", "--categorical"] {
        let own = format!("which {option} names");
        refused(table(|_, line| line.into()), &[option, "aa"], &["there is no column aa", &own, "did you mean a?"]);
        refused(table(|_, line| line.into()), &[option, "y"], &["y is the response", option]);
    }
    refused(table(|_, line| line.into()), &["--exclude", "a", "--always", "a"], &["listed in both"]);
    refused(table(|_, line| line.into()), &["--always", "a,b,c"], &["nothing is left to select from"]);
}

#[test]
fn cells_that_cannot_be_used() {
    for missing in ["", "NA", "nan", "NULL", "?", "n/a"] {
        let content = table(|line, old| if line == 7 { format!("1,{missing},3,4") } else { old.into() });
        refused(content, &[], &["t.csv: 1 values are missing in 1 columns, the first in line 7: b 1", "--exclude b"]);
    }
    refused(changed(7, "1,2,3,NA"), &[], &["the first in line 7: y 1", "--missing drop"]);
    refused(changed(4, "1,2,l2,4"), &[], &["line 4, column c: \"l2\" is not a number", "--categorical c"]);
    refused(changed(4, "1,2,inf,4"), &[], &["line 4, column c: inf is not finite"]);
    refused(changed(4, "1,2,1e999,4"), &[], &["line 4, column c: inf is not finite"]);
    let constant = table(|line, old| {
        let mut cells: Vec<&str> = old.split(',').collect();
        cells[1] = if line == 1 { "b" } else { "3" };
        cells.join(",")
    });
    refused(constant, &["--always", "b"], &["column b is constant, every cell is 3", "--exclude b"]);
    let same = table(|line, old| if line == 1 { old.into() } else { format!("{},5", &old[..old.rfind(',').unwrap()]) });
    refused(same, &[], &["the response y is constant"]);
    let names: String =
        (0..120).map(|i| format!("p{},{},{}\n", i / 2, (i * 7) % 13, i + (i * 5) % 3)).collect::<Vec<_>>().concat();
    refused(format!("id,b,y\n{names}"), &[], &["column id has 60 different texts", "an identifier", "--exclude id"]);
}

#[test]
fn texts_that_name_nearly_every_row_are_identifiers() {
    let rows: String = (0..12).map(|i| format!("p{},{},{}\n", i.max(1), (i * 7) % 5, i + (i * 5) % 3)).collect();
    refused(format!("id,b,y\n{rows}"), &[], &["column id has 11 different texts in 12 rows", "--exclude id"]);
}

/// A table with a column of words, each as often as the others.
fn words(words: [&str; 3]) -> String {
    let row = |i: usize| format!("{},{},{}\n", words[i % 3], (i * 7) % 5, i + (i * 5) % 3);
    std::iter::once("w,b,y\n".to_string()).chain((0..12).map(row)).collect()
}

#[test]
fn none_is_a_word_among_words_and_missing_among_numbers() {
    for word in ["none", "Nil"] {
        let scratch = Scratch::new();
        scratch.write("t.csv", words([word, "some", "more"]));
        let outcome = scratch.fine(&select("t.csv", "y", &[]));
        let levels = outcome.talk.lines().find(|line| line.starts_with("w: categories")).unwrap().to_string();
        assert!(levels.contains(word), "{levels}");
        refused(words([word, "1", "2"]), &[], &["the first in line 2: w 4"]);
        refused(words([word, "true", "false"]), &[], &["the first in line 2: w 4"]);
    }
}

#[test]
fn separators_are_counted_outside_quotes() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table(|line, old| if line == 1 { "\"a;b;c;d;e\",b,c,y".into() } else { old.into() }));
    scratch.fine(&select("t.csv", "y", &[]));
    assert!(scratch.json("t.vti/summary.json")["inclusion"]["a;b;c;d;e"].is_object());
}

#[test]
fn decimal_commas_are_read_or_named() {
    let scratch = Scratch::new();
    let halves = |point: &str, between: &str| {
        table(|line, old| {
            let cells = old.split(',');
            let cell = |cell: &str| if line == 1 { cell.to_string() } else { format!("{cell}{point}5") };
            cells.map(cell).collect::<Vec<_>>().join(between)
        })
    };
    scratch.write("commas.csv", halves(",", ";"));
    scratch.write("points.csv", halves(".", ";"));
    let commas = scratch.fine(&select("commas.csv", "y", &["--json"]));
    assert!(commas.talk.contains("numbers are read with decimal commas"), "{}", commas.talk);
    let points = scratch.fine(&select("points.csv", "y", &["--json"]));
    let answer = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["coefficients"].clone();
    assert_eq!(answer(&commas.data), answer(&points.data));
    // Both in one file: nobody knows what a comma means there.
    let mixed = halves(",", ";").replacen(",5", ".5", 1);
    refused(mixed, &[], &["line 2, column y: \"0,5\" looks like a number with a decimal comma", "hint: write decimal"]);
    refused(halves(",", "\t"), &[], &["line 2, column y: \"0,5\" looks like a number with a decimal comma"]);
}

#[test]
fn numbers_that_do_not_suit_the_question() {
    let whole = || table(|_, line| line.into());
    refused("a,b,y\n1,2,3\n2,1,5\n", &["--prior", "normal:1"], &["2 rows are too few, at least 3"]);
    let few = "a,b,c,y\n1,2,3,4\n2,1,5,3\n3,5,1,1\n4,4,4,2\n";
    refused(few, &[], &["4 rows are too few for 3 columns with the g-prior, at least 5", "--prior normal:SCALE"]);
    refused(whole(), &["--likelihood", "logistic"], &["line 3, column y: the response 4 is not 0 or 1"]);
    refused(
        changed(6, "1,2,3,2.5"),
        &["--likelihood", "poisson"],
        &["line 6, column y: the response 2.5 is not a count"],
    );
    refused(changed(6, "1,2,3,-2"), &["--likelihood", "poisson"], &["the response -2 is not a count"]);
    let collinear = table(|line, old| {
        let cells: Vec<&str> = old.split(',').collect();
        let sum = |x: &str, y: &str| (x.parse::<f64>().unwrap() + y.parse::<f64>().unwrap()).to_string();
        if line == 1 {
            old.into()
        } else {
            format!("{},{},{},{}", cells[0], cells[1], sum(cells[0], cells[1]), cells[3])
        }
    });
    refused(collinear, &[], &["linearly independent", "is a combination of others", "--prior normal:SCALE"]);
    refused(whole(), &["--prior", "normal:-1"], &["scale"]);
    refused(whole(), &["--likelihood", "robust:2,1,1"], &["alpha"]);
}

#[test]
fn text_as_a_response() {
    let text = |words: &'static [&'static str]| {
        table(move |line, old| {
            let start = &old[..old.rfind(',').unwrap()];
            if line == 1 { old.into() } else { format!("{start},{}", words[(line * 7 / 3) % words.len()]) }
        })
    };
    refused(text(&["no", "yes"]), &[], &["has the values no and yes", "hint: --likelihood logistic"]);
    refused(text(&["no", "yes", "well"]), &["--likelihood", "logistic"], &["text with 3 different values"]);
    let scratch = Scratch::new();
    scratch.write("t.csv", text(&["no", "yes"]));
    let outcome = scratch.fine(&select("t.csv", "y", &["--likelihood", "logistic"]));
    assert!(outcome.talk.contains("response: y = yes is 1, y = no is 0"), "{}", outcome.talk);
}

#[test]
fn configurations_that_cannot_be_used() {
    let scratch = Scratch::new();
    let head = "[problem]\nkind = \"select\"\ndata = \"builtin:hald\"\nresponse = \"y\"\n";
    let refused = |content: &str, parts: &[&str]| {
        scratch.write("c.toml", content);
        scratch.refused(&["fit", "c.toml"], parts);
    };
    scratch.refused(&["fit", "nowhere.toml"], &["nowhere.toml"]);
    refused("problem = [", &["c.toml: TOML parse error at line 1"]);
    refused("[train]\nsteps = 5\n", &["there is no section [problem]", "vti init select"]);
    refused(&format!("{head}[trian]\nsteps = 5\n"), &["c.toml:5: unknown section or key trian", "did you mean train?"]);
    refused(&format!("{head}[train]\nstepz = 5\n"), &["c.toml:6: unknown key stepz in [train]", "did you mean steps?"]);
    refused(&format!("{head}[flow]\nkind = \"spline\"\nlayer = 3\n"), &["unknown key layer in [flow]", "layers"]);
    refused(&format!("{head}[train]\nthread = 5\n"), &["did you mean threads?"]);
    refused(&format!("{head}likelihood = {{ kind = \"gausian\" }}\n"), &["[problem]", "gausian"]);
    refused(&format!("{head}[train]\nsteps = \"many\"\n"), &["[train]", "many"]);
    refused(&format!("{head}[train]\nsteps = 0\n"), &["steps"]);
    refused(&format!("version = \"0.0.1\"\n{head}"), &["made by version 0.0.1", "take the line `version` out"]);
    refused(&head.replace("response = \"y\"\n", ""), &["[problem] needs the key `response`"]);
}

#[test]
fn a_configuration_and_options_give_the_same_answer() {
    let scratch = Scratch::new();
    scratch.write("t.csv", table(|_, line| line.into()));
    scratch.write("c.toml", "[problem]\nkind = \"select\"\ndata = \"t.csv\"\nresponse = \"y\"\nalways = [\"b\"]\n");
    let by_file = scratch.fine(&[&["fit", "c.toml", "--json"][..], &SMALL].concat());
    let by_options = scratch.fine(&select("t.csv", "y", &["--always", "b", "--json"]));
    let steady = |text: &str| crate::support::steady(serde_json::from_str(text).unwrap());
    assert_eq!(steady(&by_file.data), steady(&by_options.data));
    // The resolved settings are settings again.
    let again = scratch.fine(&["fit", "t.vti/config.toml", "--json", "--out", "again"]);
    assert_eq!(steady(&again.data), steady(&by_options.data));
}

#[test]
fn a_prediction_needs_the_columns_of_the_training() {
    let scratch = Scratch::new();
    let data = fixture("mixed.csv");
    scratch.fine(&select(&data, "y", &["--out", "run"]));
    let refused = |content: &str, parts: &[&str]| {
        scratch.write("new.csv", content);
        scratch.refused(&["predict", "run", "new.csv"], parts);
    };
    refused("age,colour,smoker\n30,red,true\n", &["new.csv: column dose is missing"]);
    refused("dose,age,color,smoker\n1,30,red,true\n", &["column colour is missing", "did you mean color?"]);
    scratch.refused(&["predict", "run", "new.csv", "--interval", "2"], &["between 0 and 1"]);
    // Cells that cannot be read leave a gap and are counted; other columns do not matter.
    let rows = "1,30,pink,true,a\n1,old,red,true,b\n1,,red,true,c\n1,30,red,true,d\n";
    scratch.write("new.csv", format!("dose,age,colour,smoker,more\n{rows}"));
    let outcome = scratch.fine(&["predict", "run", "new.csv"]);
    assert!(outcome.data.contains("\n1,,,,,\n2,,,,,\n3,,,,,\n4,"), "{}", outcome.data);
    let told =
        ["3 of 4 rows", "age 1 (missing), age 1 (not a number)", "colour 1 (a level that was not there in training)"];
    for part in told {
        assert!(outcome.talk.contains(part), "{part}: {}", outcome.talk);
    }
}
