//! Bad inputs of causal graphs: each has a message of its own, which names the place and says what to do.

use crate::support::Scratch;

/// Twelve rows of four columns, with one line changed.
fn table(change: impl Fn(usize, &str) -> String) -> String {
    let rows = (0..12).map(|i| format!("{},{},{},{}", i + 1, (i * 7) % 5, (i * i) % 11, 2 * i + (i * 5) % 3));
    let lines = std::iter::once("a,b,c,d".to_string()).chain(rows);
    lines.enumerate().map(|(number, line)| change(number + 1, &line) + "\n").collect()
}

fn fine() -> String {
    table(|_, line| line.into())
}

fn changed(line: usize, content: &'static str) -> String {
    table(|number, old| if number == line { content.into() } else { old.into() })
}

fn refused(content: &str, more: &[&str], parts: &[&str]) {
    let scratch = Scratch::new();
    scratch.write("t.csv", content);
    scratch.refused(&[&["dag", "t.csv"][..], more].concat(), parts);
}

#[test]
fn columns_that_are_no_nodes() {
    refused(&changed(1, "a,b,a,d"), &[], &["columns 1 and 3 are both called a", "hint: rename"]);
    refused(&changed(5, "1,NA,3,4"), &[], &["the first in line 5: b 1", "--exclude b"]);
    refused(&changed(5, "1,red,3,4"), &[], &["line 5, column b: \"red\" is not a number", "--exclude b"]);
    refused(&changed(5, "1,inf,3,4"), &[], &["line 5, column b: inf is not finite"]);
    let constant = table(|number, old| {
        let mut cells: Vec<&str> = old.split(',').collect();
        cells[1] = if number == 1 { "b" } else { "7" };
        cells.join(",")
    });
    refused(
        &constant,
        &["--include", "a,b,c"],
        &["column b is constant, every cell is 7: nothing can depend on it", "--exclude b"],
    );
    refused(&fine(), &["--include", "a"], &["at least 2 nodes, and 1 columns are left", "--include"]);
    refused("a,b\n1,2\n2,1\n", &[], &["2 rows are too few, at least 3"]);
    let header: Vec<String> = (0..65).map(|i| format!("c{i}")).collect();
    let wide: String = (0..4)
        .map(|row| (0..65).map(|i| ((i * 7 + row * 3) % 11).to_string()).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    refused(
        &format!("{}\n{wide}", header.join(",")),
        &[],
        &["65 columns are too many", "at most 64 nodes", "--exclude"],
    );
    refused(&fine(), &["--include", "aa,b"], &["there is no column aa, which --include names", "did you mean a?"]);
    refused(&fine(), &["--columns", "a,b", "--exclude", "b"], &["b is listed in both --exclude and --include"]);
    refused(&fine(), &["--log"], &["column b: 0 has no logarithm", "leave b,c,d out of --log"]);
    refused(&fine(), &["--log=aa"], &["there is no column aa, which --log names", "did you mean a?"]);
}

#[test]
fn rules_that_cannot_be_kept() {
    refused(&fine(), &["--require", "a->x"], &["there is no column x, which --require names", "there are a, b, c, d"]);
    refused(&fine(), &["--forbid", "aa->b"], &["there is no column aa, which --forbid names", "did you mean a?"]);
    refused(&fine(), &["--tiers", "a;e"], &["there is no column e, which --tiers names"]);
    refused(&fine(), &["--exclude", "a", "--require", "a->b"], &["there is no column a, which --require names"]);
    refused(&fine(), &["--require", "a"], &["an edge is written a->b"]);
    refused(&fine(), &["--require", "a->a"], &["--require a->a: a column cannot be its own cause"]);
    refused(&fine(), &["--require", "a->b", "--forbid", "a->b"], &["a->b is both required and forbidden", "hint: "]);
    let cycle = ["--require", "a->b,b->c,c->a"];
    refused(&fine(), &cycle, &["the required edges form a cycle through", "no acyclic graph"]);
    let late = ["--require", "b->a", "--tiers", "a;b"];
    refused(&fine(), &late, &["b->a is required, but the tier of b comes after that of a", "earliest first"]);
    refused(&fine(), &["--tiers", "a,b;b"], &["b is listed twice in --tiers"]);
    let many = ["--require", "a->c,b->c", "--max-parents", "1"];
    refused(&fine(), &many, &["c has 2 required causes, but --max-parents allows 1", "raise --max-parents"]);
}

#[test]
fn settings_out_of_their_range() {
    refused(&fine(), &["--sem", "linear", "--hidden", "3"], &["--sem linear has no hidden units", "leave --hidden"]);
    refused(&fine(), &["--noise", "none"], &["a positive number or unknown is needed"]);
    refused(&fine(), &["--noise", "-1"], &["a positive number or unknown is needed"]);
    refused(&fine(), &["--hidden", "0"], &["hidden is 0"]);
    refused(&fine(), &["--weight-scale", "0"], &["weight_scale is 0"]);
    refused(&fine(), &["--edge-penalty", "-1"], &["edge_penalty is -1"]);
    let scratch = Scratch::new();
    scratch.write("t.csv", fine());
    scratch
        .refused(&["enumerate", "dag", "t.csv"], &["linear equations with known noise", "--sem linear --noise SIGMA"]);
    let header: String = (0..6).map(|i| format!("c{i}")).collect::<Vec<_>>().join(",");
    let wide: String = (0..9)
        .map(|row| (0..6).map(|i| ((i * 7 + row * (i + 3)) % 11).to_string()).collect::<Vec<_>>().join(",") + "\n")
        .collect();
    scratch.write("wide.csv", format!("{header}\n{wide}"));
    let six = ["enumerate", "dag", "wide.csv", "--sem", "linear", "--noise", "1"];
    scratch.refused(&six, &["6 nodes are too many to enumerate", "--exclude"]);
    scratch.refused(&["simulate", "dag", "--nodes", "0", "--out", "s.csv"], &["nodes"]);
}

#[test]
fn truths_that_cannot_be_read() {
    let scratch = Scratch::new();
    scratch.write("t.csv", fine());
    let refused = |content: &str, parts: &[&str]| {
        scratch.write("g.csv", content);
        scratch.refused(&["dag", "t.csv", "--truth", "g.csv"], parts);
    };
    scratch.refused(&["dag", "t.csv", "--truth", "nowhere.csv"], &["nowhere.csv", "hint: check the path"]);
    refused("", &["g.csv: there is no column from", "the first line must be from,to", "for instance a,b"]);
    refused("cause,effect\na,b\n", &["there is no column from"]);
    refused("from,to\na,e\n", &["g.csv: line 2: the data have no column e", "there are a, b, c, d"]);
    refused("from,to\na,b\nb\n", &["line 3 has 1 cells, but there are 2 columns"]);
    refused("from,to\na,\n", &["line 2: an end of the edge is missing", "for instance a,b"]);
    refused("from,to\nb,c\na,a\n", &["line 3: a cannot be its own cause", "take the line out"]);
}

#[test]
fn truths_may_have_cycles_and_repeat_themselves() {
    let scratch = Scratch::new();
    scratch.write("t.csv", fine());
    scratch.write("g.csv", "to,from\nb,a\nc,b\na,c\na,c\n");
    let small = ["--steps", "3", "--set", "train.batch=32", "--set", "check.draws=200", "--set", "check.refine=never"];
    let arguments = [&["dag", "t.csv", "--sem", "linear", "--truth", "g.csv", "--out", "run"][..], &small].concat();
    let outcome = scratch.fine(&arguments);
    assert!(outcome.talk.contains("g.csv: 1 edges are listed more than once"), "{}", outcome.talk);
    assert!(outcome.talk.contains("g.csv: the graph has a cycle through"), "{}", outcome.talk);
    let truth = &scratch.json("run/summary.json")["truth"];
    assert_eq!(truth["edges"].as_array().unwrap().len(), 3);
    let class = truth["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "cpdag_f1_mean").unwrap();
    assert!(class["corrected"].is_null(), "{class}");
}

#[test]
fn configurations_of_graphs() {
    let scratch = Scratch::new();
    let refused = |content: &str, parts: &[&str]| {
        scratch.write("c.toml", content);
        scratch.refused(&["fit", "c.toml"], parts);
    };
    scratch.write("t.csv", fine());
    let head = "[problem]\nkind = \"dag\"\ndata = \"t.csv\"\n";
    refused(
        &format!("{head}requires = [[\"a\", \"b\"]]\n"),
        &["c.toml:4: unknown key requires", "did you mean require?"],
    );
    refused(&format!("{head}response = \"a\"\n"), &["unknown key response in [problem]"]);
    refused(
        &format!("{head}require = [[\"a\", \"e\"]]\n"),
        &["there is no column e, which require in [problem] names"],
    );
    refused(&format!("{head}sem = {{ kind = \"quadratic\" }}\n"), &["[problem]", "quadratic"]);
    refused("[problem]\nkind = \"dags\"\ndata = \"t.csv\"\n", &["[problem]", "dags"]);
    scratch.write("dag.toml", scratch.fine(&["init", "dag"]).data);
    scratch.refused(&["fit", "dag.toml"], &["data.csv", "hint: check the path"]);
}

#[test]
fn known_noise_leaves_the_data_as_they_are_and_says_where_that_is_wrong() {
    let scratch = Scratch::new();
    scratch.write("t.csv", fine());
    let small = ["--steps", "3", "--set", "train.batch=32", "--set", "check.draws=200", "--set", "check.refine=never"];
    let arguments = [&["dag", "t.csv", "--sem", "linear", "--noise", "2"][..], &small].concat();
    let outcome = scratch.fine(&arguments);
    assert!(
        outcome.talk.contains("the mean of a is 6.5000") && outcome.talk.contains("--scale centre"),
        "{}",
        outcome.talk
    );
    assert!(scratch.read("t.vti/config.toml").contains("scale = \"none\""));
    let outcome = scratch.fine(&[&arguments[..], &["--scale", "centre", "--force"]].concat());
    assert!(!outcome.talk.contains("the mean of"), "{}", outcome.talk);
}
