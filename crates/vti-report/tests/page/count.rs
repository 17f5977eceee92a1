//! Laws of pages, tables and files about a number of components.

use vti::answer::{
    Answer, Band, Coefficient, ComponentTable, Count, CountAnswer, CountEvidence, Counted, Curve, ExactComparison,
    Findings, Found, GivenCount, Marginal, Method, Observed, Ordered, Positions, Quantity, Scale, Shape,
};
use vti_report::files::{self, Cells};

use super::{AWKWARD, Shown, check_page, named, quantity, sections};

/// A curve at three places, drawn in every way there is.
fn curve(value: f64, shape: Shape, downwards: bool, observed: Option<Observed>) -> Curve {
    Curve {
        name: "rate <&>".into(),
        x_label: "day".into(),
        y_label: "events".into(),
        y_scale: if downwards { Scale::Log } else { Scale::Linear },
        downwards,
        shape,
        x: vec![0.0, 1.0, 2.0],
        mean: vec![1.0, value, 2.0],
        median: vec![1.0, 1.5, value],
        bands: vec![Band { level: 0.5, low: vec![0.5, value, 1.0], high: vec![2.0, 3.0, value] }],
        observed,
        ..Curve::default()
    }
}

/// An answer about a number with every section; `number` makes its probabilities.
fn shown(number: impl Fn(f64) -> Quantity, value: f64) -> Shown {
    let component = |probability: f64, log: f64| {
        let log_evidence = Some(CountEvidence { estimate: log, se: 0.01, exact: Some(log) });
        CountAnswer { probability: number(probability), prior: 0.25, log_evidence }
    };
    let points = Observed::Points { x: vec![0.5, value], y: vec![1.0, 2.0] };
    let marginal = Marginal { mean: 3.25, sd: value, interval: [3.0, value] };
    let table = |component: &str, parameter: &str, rows: usize| ComponentTable {
        component: component.into(),
        parameters: vec![parameter.into()],
        rows: vec![vec![marginal]; rows],
    };
    let count = Count {
        memberships: None,
        counted: Counted::new("change point", "change points"),
        components: Ordered(vec![
            named("0", component(0.1, -12.0)),
            named("1", component(0.6, value)),
            named("2", CountAnswer { log_evidence: None, ..component(0.3, -10.0) }),
        ]),
        most_probable: 1,
        mean: number(1.2),
        coefficients: Ordered(vec![named("sigma", Coefficient { mean: number(0.5), sd: 0.1, interval: [0.3, 0.8] })]),
        curves: vec![
            curve(value, Shape::Steps, false, Some(Observed::histogram(&[0.2, 0.3, 1.9], (0.0, 2.0), 4, 1.0))),
            curve(value, Shape::Line, false, Some(points)),
            curve(value, Shape::Steps, true, None),
        ],
        positions: vec![Positions {
            name: "change points".into(),
            label: "day".into(),
            edges: vec![0.0, 1.0, 2.0],
            expected: vec![0.7, value],
        }],
        given: vec![
            GivenCount { count: 1, tables: vec![table("change point", "position", 1), table("segment", "rate", 2)] },
            GivenCount { count: 0, tables: vec![table("change point", "position", 0)] },
        ],
    };
    Shown { answer: Answer { found: Found::Count(Box::new(count)), ..Answer::default() }, ..Shown::default() }
}

fn exact(value: f64) -> Shown {
    let mut shown = shown(Quantity::exactly, value);
    shown.answer.correction = Method::Exact;
    shown.answer.exact = Some(ExactComparison { log_evidence: -9.5, total_variation: None });
    shown
}

#[test]
fn a_number_has_bars_curves_positions_and_components() {
    let learned = shown(quantity, 1.75);
    assert_eq!(sections(&learned), ["numbers", "curves", "positions", "components", "coefficients"]);
    let words = check_page(&learned);
    for present in [
        "How many change points are there?",
        "How many change points?",
        "learned (q)",
        "corrected",
        "prior",
        "Rate <&>",
        "50 %",
        "observed",
        "expected per unit",
        "Given 1 change point: probability 0.540",
        "segment",
    ] {
        assert!(words.contains(present), "{present}: {words}");
    }
    let text = vti_report::text(&learned.answer);
    for present in ["change points   prior", "most probable: 1 change point; mean number: 1.0800 ± 0.0100", "segment"]
    {
        assert!(text.contains(present), "{present}: {text}");
    }
}

#[test]
fn an_exact_number_has_no_errors_and_no_q() {
    let shown = exact(1.75);
    let words = check_page(&shown);
    for absent in ["corrected", "learned (q)", "±", "k̂"] {
        assert!(!words.contains(absent), "{absent}: {words}");
    }
    let text = vti_report::text(&shown.answer);
    assert!(!text.contains('±') && !text.contains("NaN") && text.contains("prior   exact  log evidence\n"), "{text}");
    assert!(text.contains("-12.0000") && text.contains("mean number: 1.2000"), "{text}");
}

#[test]
fn numbers_that_are_none_break_nothing_and_come_back() {
    for value in AWKWARD {
        for shown in [shown(quantity, value), exact(value), shown(|_| Quantity::exactly(value), value)] {
            check_page(&shown);
            assert!(!vti_report::text(&shown.answer).contains("NaN"));
            let json = shown.answer.to_json().unwrap();
            let back = Answer::from_json(&json).unwrap();
            // What JSON cannot write is not a number, and stays so.
            assert_eq!(back.to_json().unwrap(), json);
        }
    }
}

#[test]
fn curves_and_positions_are_files_of_counts_only() {
    let answer = exact(0.25).answer;
    assert!(files::OF_COUNTS.iter().all(|file| files::of(&answer).contains(file)));
    assert!(files::OF_COUNTS.iter().all(|file| !files::of(&Answer::default()).contains(file)));
    let count = answer.found.count().unwrap();
    let curves = String::from_utf8(files::curves_csv(&count.curves, Cells::Guarded).unwrap()).unwrap();
    let lines: Vec<&str> = curves.lines().collect();
    assert_eq!((lines[0], lines.len()), ("curve,x,mean,median,low_50,high_50", 10));
    assert_eq!(lines[1], "rate <&>,0,1,1,0.5,2");
    let positions = String::from_utf8(files::positions_csv(&count.positions, Cells::Guarded).unwrap()).unwrap();
    assert_eq!(positions, "positions,from,to,expected\nchange points,0,1,0.7\nchange points,1,2,0.25\n");
    let dir = std::env::temp_dir().join(format!("vti-count-{}", std::process::id()));
    let found = Findings { answer, models: Vec::new(), samples: vti::answer::Samples::default() };
    vti_report::write(&found, &vti_report::Beside::default(), &dir).unwrap();
    assert!(files::OF_COUNTS.iter().all(|file| dir.join(file).exists()));
    std::fs::remove_dir_all(dir).unwrap();
}
