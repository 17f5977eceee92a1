//! One run: what was reported, and how far it is from the truth.

use std::time::Instant;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use vti::answer::{Answer, Findings, Found, Quantity, Run, Sources};
use vti::check::{VerdictKind, check_and_learn};
use vti::device::Cpu;
use vti::family::FamilySettings;
use vti::stats::Estimate;
use vti::train::{Silent, Trainer};

use super::known::{Case, MIN_PROBABILITY, Truth};

/// An error of a reported probability that matters.
const TOLERATED: f64 = 0.03;

/// What an answer shows of a probability: a smaller error is none.
const SHOWN: f64 = 0.0005;

/// A reported probability beside the truth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Compared {
    pub(super) what: String,
    pub(super) is_model: bool,
    pub(super) truth: f64,
    pub(super) truth_se: f64,
    pub(super) corrected: f64,
    pub(super) se: f64,
    pub(super) q: f64,
}

impl Compared {
    fn new(what: &str, is_model: bool, truth: Estimate, found: &Quantity) -> Self {
        let Quantity { q, corrected, se, .. } = *found;
        // What is not a number is as wrong as can be, and JSON could not hold it.
        let or = |value: f64, other: f64| if value.is_finite() { value } else { other };
        let (q, corrected, se) = (or(q, -1.0), or(corrected, -1.0), or(se, 0.0));
        Self { what: what.into(), is_model, truth: truth.value, truth_se: truth.se, corrected, se, q }
    }

    pub(super) fn off(&self) -> f64 {
        (self.corrected - self.truth).abs()
    }

    pub(super) fn q_off(&self) -> f64 {
        (self.q - self.truth).abs()
    }

    /// Of both, the truth's included.
    fn error(&self) -> f64 {
        f64::hypot(self.se, self.truth_se)
    }

    pub(super) fn is_within(&self, errors: f64) -> bool {
        self.off() <= errors * self.error() + SHOWN
    }

    pub(super) fn is_strictly_within(&self, errors: f64) -> bool {
        self.off() <= errors * self.error()
    }

    /// Off by more than is tolerated, and by more than it admits.
    pub(super) fn is_wrong(&self) -> bool {
        self.off() > TOLERATED && self.off() > 4.0 * self.error()
    }
}

/// What came of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) case: String,
    pub(super) group: String,
    pub(super) seed: u64,
    pub(super) verdict: VerdictKind,
    pub(super) text: String,
    pub(super) method: String,
    pub(super) compared: Vec<Compared>,
    pub(super) train_seconds: f64,
    pub(super) check_seconds: f64,
}

impl Outcome {
    /// Trusted though something that was reported is wrong.
    pub(super) fn is_false_trust(&self) -> bool {
        self.verdict != VerdictKind::DoNotTrust && self.compared.iter().any(Compared::is_wrong)
    }

    /// Not trusted though all that was reported is right.
    pub(super) fn is_false_alarm(&self) -> bool {
        self.verdict == VerdictKind::DoNotTrust && self.compared.iter().all(|one| one.off() <= TOLERATED)
    }

    /// The probability that is farthest from the truth.
    pub(super) fn worst(&self) -> Option<&Compared> {
        self.compared.iter().max_by(|a, b| a.off().total_cmp(&b.off()))
    }

    pub(super) fn largest(&self) -> f64 {
        self.worst().map_or(0.0, Compared::off)
    }
}

/// Trains, checks and compares.
pub(super) fn run(case: &Case, seed: u64, device: &Cpu<f32>) -> Result<Outcome> {
    let start = Instant::now();
    let settings = case.question.train_settings(seed);
    let trainer = Trainer::new(case.question.problem(), device.clone(), &FamilySettings::default(), &settings)?;
    let fit = trainer.run(&mut Silent)?;
    let train_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let run = Run::of(&fit);
    let (posterior, check, _) = check_and_learn(fit.posterior, &case.question.check_settings(), None, &mut |_| true)?;
    let findings = Findings::new(&posterior, &case.question.subject(), &Sources::from(&check), run)?;
    let check_seconds = start.elapsed().as_secs_f64();
    Ok(Outcome {
        case: case.name.clone(),
        group: case.group.into(),
        seed,
        verdict: findings.answer.verdict.kind,
        text: findings.answer.verdict.text.clone(),
        method: format!("{:?}", findings.answer.correction).to_lowercase(),
        compared: compare(&findings, &case.truth),
        train_seconds,
        check_seconds,
    })
}

fn compare(findings: &Findings, truth: &Truth) -> Vec<Compared> {
    let parts = parts(&findings.answer);
    let parts = parts.iter().zip(&truth.parts).map(|((name, found), truth)| Compared::new(name, false, *truth, found));
    let mut all: Vec<Compared> = parts.collect();
    for model in &findings.models {
        let known =
            truth.models.get(&model.word).copied().unwrap_or(Estimate { value: 0.0, se: MIN_PROBABILITY / 5.0 });
        if known.value >= MIN_PROBABILITY || model.probability.corrected >= MIN_PROBABILITY {
            all.push(Compared::new(&model.label, true, known, &model.probability));
        }
    }
    // A model that nobody met was said to be impossible.
    let met = |word: &str| findings.models.iter().any(|model| model.word == word);
    let missing = truth.models.iter().filter(|(word, known)| known.value >= MIN_PROBABILITY && !met(word));
    all.extend(
        missing.map(|(word, known)| Compared::new(&format!("{word}, not met"), true, *known, &Quantity::default())),
    );
    all
}

/// Probabilities of parts, or of edges row by row without the diagonal.
fn parts(answer: &Answer) -> Vec<(String, Quantity)> {
    match &answer.found {
        Found::Select(terms) | Found::Own(terms) => terms.inclusion.0.clone(),
        Found::Count(count) => {
            count.components.0.iter().map(|(number, found)| (number.clone(), found.probability)).collect()
        }
        Found::Dag(graphs) => {
            let edges = &graphs.edges;
            let pairs = (0..edges.nodes.len()).flat_map(|from| (0..edges.nodes.len()).map(move |to| (from, to)));
            let name = |from: usize, to: usize| format!("{}→{}", edges.nodes[from], edges.nodes[to]);
            pairs
                .filter(|(from, to)| from != to)
                .map(|(from, to)| (name(from, to), edges.probabilities[from][to]))
                .collect()
        }
    }
}
