//! Products and squares by a formula, and the models that heredity leaves.

use std::collections::BTreeMap;

use crate::support::{SMALL, Scratch, noise, number};

const ROWS: u32 = 40;

/// Two numbers, categories, and a response that depends on a product.
fn rows() -> Vec<(f64, f64, &'static str, f64)> {
    let row = |row: u32| {
        let (a, b, e) = (3.0 + noise(row, 577), 2.0 * noise(row, 331), noise(row, 719) - 0.5);
        (a, b, ["red", "green", "blue"][row as usize % 3], a + 4.0 * (a - 3.5) * (b - 1.0) + e)
    };
    (0..ROWS).map(row).collect()
}

/// The table as somebody has it.
fn raw() -> String {
    let line = |(a, b, g, y): &(f64, f64, &str, f64)| format!("{a},{b},{g},{y}\n");
    "a,b,g,y\n".to_string() + &rows().iter().map(line).collect::<String>()
}

/// The same with products of centred columns written out.
fn written_out() -> String {
    let rows = rows();
    let mean = |of: fn(&(f64, f64, &str, f64)) -> f64| rows.iter().map(of).sum::<f64>() / f64::from(ROWS);
    let (mean_a, mean_b) = (mean(|row| row.0), mean(|row| row.1));
    let line = |(a, b, _, y): &(f64, f64, &str, f64)| {
        let (da, db) = (a - mean_a, b - mean_b);
        format!("{a},{b},{},{},{y}\n", da * db, da * da)
    };
    "a,b,ab,aa,y\n".to_string() + &rows.iter().map(line).collect::<String>()
}

/// Words of models, which are bits of a, b, a:b and a², with their probabilities, all of them as long as heredity allows.
fn enumerated(scratch: &Scratch, file: &str, more: &[&str]) -> BTreeMap<String, f64> {
    let question = ["enumerate", file, "--response", "y", "--out", "models.csv"];
    scratch.fine(&[&question[..], more].concat());
    let text = scratch.read("models.csv");
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.records().map(Result::unwrap).map(|row| (row[0].to_string(), row[3].parse().unwrap())).collect()
}

/// Whether a model has what its products need.
fn respects(word: &str, heredity: &str) -> bool {
    let bits: Vec<bool> = word.chars().map(|bit| bit == '1').collect();
    let [a, b, product, square] = bits[..] else { panic!("{word}") };
    match heredity {
        "strong" => (!product || a && b) && (!square || a),
        "weak" => (!product || a || b) && (!square || a),
        _ => true,
    }
}

#[test]
fn heredity_leaves_the_models_that_have_the_columns_of_their_products() {
    let scratch = Scratch::new();
    scratch.write("raw.csv", raw());
    scratch.write("out.csv", written_out());
    for prior in [&["--model-prior", "uniform"][..], &["--model-prior", "beta-binomial:1,3", "--prior", "normal:2"]] {
        // By brute force: all models of columns that were written out, and those that are left have the rest's share.
        let all = enumerated(&scratch, "out.csv", prior);
        assert_eq!(all.len(), 16);
        for heredity in ["strong", "weak", "none"] {
            let terms = ["--terms", "a*b, a^2", "--heredity", heredity];
            let found = enumerated(&scratch, "raw.csv", &[&terms[..], prior].concat());
            let left = || all.iter().filter(|(word, _)| respects(word, heredity));
            let total: f64 = left().map(|(_, p)| p).sum();
            assert_eq!(found.len(), left().count(), "{heredity}");
            for (word, p) in left() {
                assert!((found[word] - p / total).abs() < 1e-9, "{heredity} {word}: {} {}", found[word], p / total);
            }
        }
    }
}

#[test]
fn every_way_of_answering_stays_among_the_models_that_are_left() {
    let scratch = Scratch::new();
    scratch.write("raw.csv", raw());
    let models = |more: &[&str]| {
        let question = ["select", "raw.csv", "--response", "y", "--terms", "a*b, a^2", "--out", "run", "--force"];
        scratch.fine(&[&question[..], more].concat());
        let text = scratch.read("run/models.csv");
        let words: Vec<String> = text.lines().skip(1).map(|line| line.split(',').next().unwrap().into()).collect();
        assert!(words.iter().all(|word| respects(word, "strong")), "{more:?}: {words:?}");
        let summary = scratch.json("run/summary.json");
        let names: Vec<String> = summary["inclusion"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["a", "a:b", "a^2", "b"]);
        summary
    };
    let exact = models(&["--method", "exact"]);
    assert!(exact["verdict"]["text"].as_str().unwrap().contains("all 8 models"), "{}", exact["verdict"]);
    let expected = ["b", "a^2"].map(|name| number(&exact["inclusion"][name]["exact"]));
    let found = models(&["--method", "search", "--threads", "1"]);
    for (name, expected) in ["b", "a^2"].iter().zip(expected) {
        // A search that met all models has their exact probabilities.
        let found = number(&found["inclusion"][name]["corrected"]);
        assert!((found - expected).abs() < 0.02, "{name}: {found} {expected}");
    }
    models(&SMALL);
    for kind in ["categorical", "autoregressive"] {
        models(&[&SMALL[..], &["--set", &format!("models.kind={kind}")]].concat());
    }
    let chains = ["rjmcmc", "raw.csv", "--response", "y", "--terms", "a*b, a^2", "--chains", "4", "--sweeps", "2000"];
    let said = scratch.fine(&chains).data;
    assert!(!said.contains("{a:b") && !said.contains("{a^2") && !said.contains("{b, a:b"), "{said}");
}

#[test]
fn predictions_multiply_the_columns_of_new_rows() {
    let scratch = Scratch::new();
    scratch.write("raw.csv", raw());
    scratch.write("out.csv", written_out());
    let predict = |file: &str, more: &[&str], new: &str| {
        let question = ["select", file, "--response", "y", "--method", "exact", "--out", "run", "--force"];
        scratch.fine(&[&question[..], more].concat());
        let text = scratch.fine(&["predict", "run", new]).data;
        let mean = |line: &str| line.split(',').nth(1).unwrap().parse().unwrap();
        text.lines().skip(1).map(mean).collect::<Vec<f64>>()
    };
    let terms = ["--terms", "a*b, a^2", "--heredity", "none"];
    let (found, expected) = (predict("raw.csv", &terms, "raw.csv"), predict("out.csv", &[], "out.csv"));
    assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
    // Categories are multiplied level by level; a cell that cannot be read is counted once.
    let terms = ["--terms", "., a:g, (a+b)^2"];
    let told = predict("raw.csv", &terms, "raw.csv");
    assert!(told.iter().all(|mean| mean.is_finite()));
    let summary = scratch.json("run/summary.json");
    let names: Vec<&String> = summary["coefficients"].as_object().unwrap().keys().collect();
    let expected = ["a", "a:b", "a:g=green", "a:g=red", "b", "g=green", "g=red", "intercept", "sigma"];
    assert_eq!(names, expected);
    scratch.write("new.csv", "a,b,g\n3.1,,red\n3.1,1,pink\n");
    let told = scratch.fine(&["predict", "run", "new.csv"]).talk;
    assert!(told.contains("b 1 (missing), g 1 (a level that was not there in training)"), "{told}");
    scratch.write("new.csv", "a,g\n3.1,red\n");
    scratch.refused(&["predict", "run", "new.csv"], &["column b is missing"]);
}

#[test]
fn formulas_that_make_no_sense_are_pointed_at() {
    let scratch = Scratch::new();
    scratch.write("t.csv", raw().replace("a,b,g,y", "alpha,b,g,y"));
    for (formula, more, parts) in [
        ("alfa*b", &[][..], &["there is no column alfa\n  alfa*b\n  ^^^^\nhint: did you mean alpha?"][..]),
        ("alpha*b*g*b", &[], &["products are of two or three columns", "  alpha*b*g*b\n           ^\n"]),
        ("alpha:alpha:b", &[], &["a product of three is of different columns"]),
        ("alpha, y", &[], &["y is the response\n  alpha, y\n         ^\n"]),
        ("alpha:b", &[], &["alpha:b could never be in, as alpha is no term itself", "--heredity none"]),
        ("alpha, g^2", &[], &["the square of g says what g says", "  alpha, g^2\n         ^\n"]),
        ("alpha*b", &["--exclude", "b"], &["b is listed in --exclude"]),
        ("alpha*b", &["--weights", "b"], &["b is an offset, exposure or weight"]),
        ("alpha*b", &["--heredity", "feeble"], &["there are none, weak and strong"]),
    ] {
        let question = ["select", "t.csv", "--response", "y", "--out", "run", "--terms", formula];
        scratch.refused(&[&question[..], more].concat(), parts);
    }
    // Indicators that exclude each other have no product.
    scratch.write("t.csv", "u,v,x,y\n1,0,2,1\n0,1,3,4\n0,0,5,1\n1,0,1,5\n0,1,4,2\n0,0,7,3\n1,0,8,1\n0,0,9,2\n");
    let said = scratch.fine(&["enumerate", "t.csv", "--response", "y", "--terms", ".*., x^2"]);
    assert!(said.talk.contains("left out u:v: it is the same in every row"), "{}", said.talk);
    assert!(said.data.contains("u:x") && said.data.contains("x^2") && !said.data.contains("u^2"), "{}", said.data);
}

#[test]
fn products_of_three_are_multiplied_and_need_their_columns() {
    let scratch = Scratch::new();
    let cells: Vec<[f64; 4]> = (0..40)
        .map(|row| {
            let [a, b, c] = [577, 331, 719].map(|by| 2.0 * noise(row, by) + 0.3);
            [a, b, c, a + 3.0 * a * b * c + noise(row, 467)]
        })
        .collect();
    let means: Vec<f64> = (0..3).map(|column| cells.iter().map(|row| row[column]).sum::<f64>() / 40.0).collect();
    let (mut raw, mut out) = ("a,b,c,y\n".to_string(), "a,b,c,ab,ac,bc,abc,y\n".to_string());
    for [a, b, c, y] in cells {
        let (da, db, dc) = (a - means[0], b - means[1], c - means[2]);
        raw += &format!("{a},{b},{c},{y}\n");
        out += &format!("{a},{b},{c},{},{},{},{},{y}\n", da * db, da * dc, db * dc, da * db * dc);
    }
    scratch.write("raw.csv", raw);
    scratch.write("out.csv", out);
    let expected = enumerated(&scratch, "out.csv", &[]);
    let near = |found: &BTreeMap<String, f64>, expected: &BTreeMap<String, f64>| {
        assert_eq!(found.len(), expected.len());
        found.iter().for_each(|(word, p)| assert!((p - expected[word]).abs() < 1e-6, "{word}: {p} {}", expected[word]));
    };
    near(&enumerated(&scratch, "raw.csv", &["--terms", "a*b*c", "--heredity", "none"]), &expected);
    // Columns of a:b, a:c, b:c and a:b:c.
    let columns = [&[0, 1][..], &[0, 2], &[1, 2], &[0, 1, 2]];
    for (heredity, enough) in [("strong", false), ("weak", true)] {
        let may = |word: &str| {
            let bit = |place: usize| word.as_bytes()[place] == b'1';
            (0..4).all(|product| {
                let mut own = columns[product].iter().map(|&column| bit(column));
                !bit(3 + product) || if enough { own.any(|is_in| is_in) } else { own.all(|is_in| is_in) }
            })
        };
        let total: f64 = expected.iter().filter(|(word, _)| may(word)).map(|(_, p)| p).sum();
        let left = expected.iter().filter(|(word, _)| may(word)).map(|(word, p)| (word.clone(), p / total)).collect();
        for formula in ["a*b*c", "(a+b+c)^3", "a, b, c, a:b, a:c, b:c, a:b:c"] {
            near(&enumerated(&scratch, "raw.csv", &["--terms", formula, "--heredity", heredity]), &left);
        }
    }
    let question = ["select", "raw.csv", "--response", "y", "--terms", "a*b*c", "--out", "run"];
    scratch.fine(&question);
    assert_eq!(scratch.fine(&["predict", "run", "raw.csv"]).data.lines().count(), 41);
}
