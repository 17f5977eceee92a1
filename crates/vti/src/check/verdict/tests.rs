//! What is said of what was found.

use super::*;

/// What is said of blocks where model probabilities hardly moved.
fn said(khat: f64, basis: &Basis) -> Verdict {
    let correction = Correction { models: Vec::new(), total_variation: 0.0, total_variation_se: 0.0 };
    Verdict::of_blocks(Some(khat), 0.7, basis, &correction)
}

fn model(corrected: f64, khat: Option<f64>, draws: usize) -> ModelCorrection {
    let corrected = Estimate { value: corrected, se: 0.001 };
    let (model, label) = (vec![0u16].into(), "{x1}".into());
    ModelCorrection { model, label, q: corrected.value, corrected, evidence: None, khat, draws }
}

/// What is said of weights, of two models and of parts.
fn weighed(khat: f64, models: [ModelCorrection; 2], parts: f64) -> Verdict {
    let correction = Correction { models: models.into(), total_variation: 0.0, total_variation_se: 0.0 };
    let parts = Estimate { value: parts, se: 0.001 };
    let log_evidence = Estimate { value: 0.0, se: 0.0 };
    Verdict::of_weights(&Weighed { khat: Some(khat), threshold: 0.7, log_evidence, correction: &correction, parts })
}

#[test]
fn what_is_not_a_number_is_not_trusted() {
    let trusted = || weighed(0.4, [model(0.9, Some(0.2), 5000), model(0.1, Some(0.3), 500)], 0.0);
    let (sure, none) = (Estimate { value: 1.0, se: 0.1 }, Estimate { value: f64::NAN, se: 0.1 });
    let correction =
        |value: f64| Correction::estimated(vec![model(value, Some(0.2), 5000), model(0.1, Some(0.3), 500)]);
    assert_eq!(trusted().unless_undefined(sure, &correction(0.9)).kind, VerdictKind::Trust);
    for found in
        [trusted().unless_undefined(none, &correction(0.9)), trusted().unless_undefined(sure, &correction(f64::NAN))]
    {
        assert!(found.kind == VerdictKind::DoNotTrust && found.text.starts_with("do not trust: "), "{}", found.text);
    }
}

#[test]
fn weights_are_judged_model_by_model_and_part_by_part() {
    use VerdictKind::{Corrected, DoNotTrust, Trust};
    let fine = || model(0.9, Some(0.2), 5000);
    for (own, parts, kind, part) in [
        (model(0.1, Some(0.3), 500), 0.0, Trust, "k̂ = 0.40 is below 0.70, and"),
        // A model that matters has to have even weights of its own; one that does not need not.
        (model(0.06, Some(1.1), 500), 0.0, DoNotTrust, "of the model {x1} alone, of probability 0.06, k̂ = 1.10"),
        (model(0.06, None, 3), 0.0, DoNotTrust, "k̂ is unknown"),
        (model(0.04, Some(1.1), 500), 0.0, Trust, "and correcting"),
        // Of many models none may have moved, but all of their parts.
        (model(0.1, Some(0.3), 500), 0.2, Corrected, "that of one of their parts by 0.200"),
    ] {
        let found = weighed(0.4, [fine(), own], parts);
        assert_eq!(found.kind, kind, "{}", found.text);
        assert!(found.text.contains(part), "{part:?} in: {}", found.text);
    }
}

#[test]
fn what_lies_where_nothing_can_be_is_not_trusted() {
    let trust = || weighed(0.4, [model(0.9, Some(0.2), 5000), model(0.1, Some(0.3), 500)], 0.0);
    assert_eq!(trust().with_impossible(0.01), trust());
    let found = trust().with_impossible(0.13);
    assert_eq!(found.kind, VerdictKind::Corrected);
    assert!(found.text.starts_with("corrected: 13 % of q lies where the density is 0"), "{}", found.text);
    let never = Verdict { kind: VerdictKind::DoNotTrust, text: "do not trust: k̂".into() };
    assert_eq!(never.clone().with_impossible(0.5).kind, VerdictKind::DoNotTrust);
    assert!(never.with_impossible(0.5).text.contains("50 % of q"));
}

#[test]
fn blocks_are_judged_by_how_far_edges_move() {
    use BlockMethod::{Annealed, Exact, Weights};
    let basis = |moved, method, left_out, apart| Basis { moved, method, left_out, apart, beyond: None };
    let beyond = |held, is_settled| Basis { beyond: Some(Beyond { held, is_settled }), ..basis(0.0, Exact, 0, 0.0) };
    // What is said, and one word that is not.
    let cases: [(f64, Basis, VerdictKind, [&str; 2], &str); 12] = [
        // Good weights of what q draws say nothing about what it has lost.
        (0.3, basis(0.01, Weights, 0, 0.0), VerdictKind::DoNotTrust, ["q itself draws", "0.30"], "from the prior"),
        (1.2, basis(0.01, Weights, 0, 0.0), VerdictKind::DoNotTrust, ["go unseen", "0.010 at most"], "from the prior"),
        (1.2, basis(0.2, Weights, 0, 0.1), VerdictKind::DoNotTrust, ["up to 0.20", "train longer"], "anneal"),
        (0.3, basis(0.01, Annealed, 0, 0.01), VerdictKind::Trust, ["from the prior", "0.010 at most"], "parameters"),
        (1.2, basis(0.01, Annealed, 0, 0.01), VerdictKind::Corrected, ["from the prior", "parameters"], "raise"),
        (0.3, basis(0.01, Annealed, 0, 0.2), VerdictKind::Corrected, ["up to 0.200", "corrected edges"], "parameters"),
        (0.3, basis(0.01, Annealed, 9, 0.0), VerdictKind::DoNotTrust, ["9 more sets", "anneal.work"], "train"),
        (1.2, basis(0.2, Annealed, 0, 0.0), VerdictKind::DoNotTrust, ["up to 0.20", "raise runs"], "anneal.work"),
        (0.3, basis(0.0, Exact, 0, 0.0), VerdictKind::Trust, ["exact", "0.000"], "never tried"),
        // What was never tried is always spoken of.
        (0.3, beyond(0.004, true), VerdictKind::Trust, ["never tried", "0.004"], "raise"),
        (0.3, beyond(0.3, true), VerdictKind::Corrected, ["never tried", "0.300"], "raise"),
        (0.3, beyond(0.004, false), VerdictKind::DoNotTrust, ["never tried", "models.beam"], "exact"),
    ];
    for (khat, basis, kind, has, lacks) in cases {
        let Verdict { kind: found, text } = said(khat, &basis);
        assert_eq!(found, kind, "{text}");
        assert!(has.iter().all(|part| text.contains(part)), "{has:?} in: {text}");
        assert!(!text.contains(lacks), "no {lacks:?} in: {text}");
    }
}
