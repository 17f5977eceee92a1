//! Laws of pages about answers without a q: exact ones, and those of chains over models.

use vti::answer::{Bound, ExactComparison, Found, Method, Quantity, SearchFacts};
use vti::check::{Verdict, VerdictKind};
use vti::stats::Estimate;

use super::{AWKWARD, Shown, check_page, sections, small};

/// A page with every section of an answer that chains over models found.
fn searched() -> Shown {
    let Shown { mut answer, samples, settings, .. } = small();
    let unlearned = |found: &mut Quantity| (found.q, found.exact) = (f64::NAN, None);
    if let Found::Select(terms) = &mut answer.found {
        terms.inclusion.0.iter_mut().for_each(|(_, part)| unlearned(part));
        terms.coefficients.0.iter_mut().for_each(|(_, coefficient)| unlearned(&mut coefficient.mean));
    }
    for model in &mut answer.models {
        unlearned(&mut model.probability);
        model.khat = None;
    }
    answer.verdict = Verdict { kind: VerdictKind::Trust, text: "trust: chains agree".into() };
    (answer.elbo, answer.exact, answer.correction) = (None, None, Method::Search);
    answer.search = Some(SearchFacts {
        chains: 4,
        temperatures: 3,
        iterations: 8_000,
        evidences: 12_345,
        rhat: Some(1.004),
        effective: 4_321.0,
        unmet: 0.2,
        ended: vti::search::Ended::Converged,
        weights: None,
    });
    Shown { answer, samples, settings, ..Shown::default() }
}

#[test]
fn an_answer_of_chains_over_models_has_errors_and_no_q() {
    let shown = searched();
    assert_eq!(sections(&shown), ["inclusion", "models", "coefficients", "pairs", "settings"]);
    let words = check_page(&shown);
    for present in
        ["Trust it: chains over models agree", "1.004", "4321", "4 × 8000", "12345", "Nothing was learned.", "±"]
    {
        assert!(words.contains(present), "{present}: {words}");
    }
    for absent in ["corrected", "learned (q)", "steps", "bound", "k̂"] {
        assert!(!words.contains(absent), "{absent}: {words}");
    }
    let text = vti_report::text(&shown.answer);
    assert!(text.contains('±') && !text.contains("NaN") && text.contains("by chains\n"), "{text}");
}

#[test]
fn where_a_distribution_over_models_has_learned_what_chains_met_its_numbers_stand_beside_theirs() {
    let Shown { mut answer, samples, settings, .. } = searched();
    let of_q = |found: &mut Quantity| found.q = 0.987 * found.corrected;
    if let Found::Select(terms) = &mut answer.found {
        terms.inclusion.0.iter_mut().for_each(|(_, part)| of_q(part));
        terms.coefficients.0.iter_mut().for_each(|(_, coefficient)| of_q(&mut coefficient.mean));
    }
    answer.models.iter_mut().for_each(|model| of_q(&mut model.probability));
    answer.elbo = Some(Bound { mean: -123.75, se: 0.01 });
    answer.log_evidence.khat = Some(0.31);
    let shown = Shown { answer, samples, settings, ..Shown::default() };
    let words = check_page(&shown);
    for present in ["learned (q)", "by chains", "-123.750", "0.31", "of q(m), which learned what chains met"] {
        assert!(words.contains(present), "{present}: {words}");
    }
    assert!(!words.contains("Nothing was learned"), "{words}");
    let text = vti_report::text(&shown.answer);
    let header = text.lines().next().unwrap();
    assert_eq!(
        header.split_whitespace().collect::<Vec<_>>(),
        ["inclusion", "probability", "q", "by", "chains"],
        "{text}"
    );
    assert!(!text.contains("NaN"), "{text}");
}

/// The same of an answer that is exact.
fn exact(value: impl Fn(f64) -> f64) -> Shown {
    let Shown { mut answer, samples, settings, .. } = small();
    let exactly = |found: &mut Quantity| *found = Quantity::exactly(value(found.corrected));
    if let Found::Select(terms) = &mut answer.found {
        terms.inclusion.0.iter_mut().for_each(|(_, part)| exactly(part));
        terms.coefficients.0.iter_mut().for_each(|(_, coefficient)| exactly(&mut coefficient.mean));
    }
    // As many as make a scatter plot of what was learned.
    answer.models = answer.models.iter().cycle().take(12).cloned().collect();
    for model in &mut answer.models {
        exactly(&mut model.probability);
        (model.log_evidence, model.khat) = (Some(Estimate { value: value(-100.0), se: 0.0 }), None);
    }
    answer.verdict = Verdict { kind: VerdictKind::Trust, text: "trust: exact".into() };
    (answer.elbo, answer.correction) = (None, Method::Exact);
    answer.exact = Some(ExactComparison { log_evidence: -102.4, total_variation: None });
    Shown { answer, samples, settings, ..Shown::default() }
}

#[test]
fn an_exact_answer_has_one_number_for_each_thing() {
    let shown = exact(|value| value);
    assert_eq!(sections(&shown), ["inclusion", "models", "coefficients", "pairs", "settings"]);
    let words = check_page(&shown);
    assert!(words.contains("Trust it: the answer is exact") && words.contains("0.882"), "{words}");
    for absent in ["corrected", "learned (q)", "steps", "bound", "k̂", "±"] {
        assert!(!words.contains(absent), "{absent}: {words}");
    }
    assert!(!words.lines().any(|line| line == "q" || line == "mean, q"), "{words}");
    let text = vti_report::text(&shown.answer);
    assert!(
        !text.contains('±') && !text.contains("NaN") && text.starts_with("inclusion probability   exact\n"),
        "{text}"
    );
    for value in AWKWARD {
        check_page(&exact(|_| value));
    }
}
