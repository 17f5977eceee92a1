//! Priors of counts.

use super::*;

fn parse(text: &str) -> CountPrior {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn counts_sum_to_one() -> Result<(), PriorError> {
    for text in ["uniform", "poisson:3", "poisson:0.001", "poisson:500", "geometric:0.5", "geometric:0.999"] {
        for range in [0..=0, 0..=8, 1..=30, 5..=5, 900..=1000] {
            let logs = parse(text).log_probabilities(range.clone())?;
            let sum: f64 = logs.iter().map(|log| log.exp()).sum();
            assert!(logs.len() == range.count() && (sum - 1.0).abs() < 1e-10, "{text}: {sum}");
        }
    }
    let logs = parse("poisson:3").log_probabilities(2..=4)?;
    // 3²/2!, 3³/3! and 3⁴/4! in proportion: 4.5, 4.5 and 3.375.
    assert!((logs[0] - logs[1]).abs() < 1e-14 && (logs[2].exp() - 3.375 / 12.375).abs() < 1e-14);
    let logs = CountPrior::from(Geometric(0.25)).log_probabilities(0..=3)?;
    assert!(logs.windows(2).all(|pair| (pair[1] - pair[0] - 0.75f64.ln()).abs() < 1e-14));
    let logs = CountPrior::from(vec![1.0, 0.0, 3.0]).log_probabilities(4..=6)?;
    assert!((logs[0].exp() - 0.25).abs() < 1e-15 && logs[1] == f64::NEG_INFINITY);
    Ok(())
}

#[test]
fn texts_and_files_say_the_same() -> Result<(), Box<dyn std::error::Error>> {
    for text in ["uniform", "poisson:3", "geometric:0.5", "weights:1,2,0.5"] {
        let prior = parse(text);
        assert_eq!(prior.to_string(), text);
        let written = serde_json::to_string(&prior)?;
        assert_eq!(serde_json::from_str::<CountPrior>(&written)?, prior);
        assert!(serde_json::from_str::<CountPrior>(&written.replace('}', ",\"more\":1}")).is_err());
    }
    assert_eq!((CountPrior::from(Poisson(3.0)), CountPrior::default()), (parse("poisson:3"), parse("uniform")));
    Ok(())
}

#[test]
fn bad_parameters_are_named() {
    for (text, word) in [
        ("poisson:0", "mean"),
        ("poisson:inf", "mean"),
        ("poisson", "no prior"),
        ("geometric:0", "p of"),
        ("geometric:1", "p of"),
        ("weights:1,-1", "weight 2"),
        ("weights", "no prior"),
        ("uniform:3", "no prior"),
    ] {
        let error = text.parse::<CountPrior>().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains(word), "{text}: {error}");
    }
    let said = |prior: CountPrior, range| prior.log_probabilities(range).err().map(|error| error.to_string());
    #[allow(clippy::reversed_empty_ranges)]
    let empty = 3..=2;
    assert!(said(CountPrior::default(), empty).is_some_and(|text| text.contains("from 3 to 2")));
    assert!(said(vec![1.0].into(), 0..=1).is_some_and(|text| text.contains("1 weights for 2 counts")));
    assert!(said(vec![0.0, 0.0].into(), 0..=1).is_some_and(|text| text.contains("no probability")));
}
