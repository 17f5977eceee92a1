//! What chains found.

use std::collections::HashMap;

use serde::Serialize;

use super::batch::ChainBatch;
use super::settings::RjmcmcSettings;
use crate::check::{Verdict, VerdictKind};
use crate::posterior::Draws;
use crate::problem::Problem;
use crate::space::{Model, ModelSpace};
use crate::stats::{Diagnosis, Estimate, share_error};
use crate::workers::Workers;

/// How many moves of a kind were accepted, of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Accepted {
    /// Moves that were proposed.
    pub proposed: u64,
    /// Moves that were accepted.
    pub accepted: u64,
}

impl Accepted {
    /// The share of accepted moves; not a number where none was proposed.
    pub fn rate(&self) -> f64 {
        self.accepted as f64 / self.proposed as f64
    }

    pub(super) fn add(&mut self, accepted: bool) {
        self.proposed += 1;
        self.accepted += u64::from(accepted);
    }

    fn join(&mut self, other: &Self) {
        self.proposed += other.proposed;
        self.accepted += other.accepted;
    }
}

/// Accepted moves by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Acceptance {
    /// A term came in.
    pub birth: Accepted,
    /// A term went out.
    pub death: Accepted,
    /// A term came in for another.
    pub swap: Accepted,
    /// Parameters moved.
    pub within: Accepted,
}

impl Acceptance {
    pub(super) fn join(&mut self, other: &Self) {
        self.birth.join(&other.birth);
        self.death.join(&other.death);
        self.swap.join(&other.swap);
        self.within.join(&other.within);
    }

    /// The rate of steps within models since an earlier count.
    pub(super) fn within_since(&self, before: &Self) -> f64 {
        let (now, then) = (self.within, before.within);
        Accepted { proposed: now.proposed - then.proposed, accepted: now.accepted - then.accepted }.rate()
    }
}

/// A model that chains visited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelShare {
    /// The model.
    pub model: Model,
    /// What people read.
    pub label: String,
    /// Kept states at it.
    pub draws: usize,
    /// Its posterior probability.
    pub probability: Estimate,
}

/// A term, over all models.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Inclusion {
    /// The posterior probability that it is in.
    pub probability: Estimate,
    /// Split-R̂ of its indicator; none where it never changed.
    pub rhat: Option<f64>,
    /// Effective sample size of its indicator; none where it never changed.
    pub effective: Option<f64>,
}

/// What chains found.
#[derive(Clone, Debug, Serialize)]
pub struct Chains {
    /// Models that were visited, most probable first.
    pub models: Vec<ModelShare>,
    /// A term for each bit of a word.
    pub inclusion: Vec<Inclusion>,
    /// The largest split-R̂ of the indicators of terms and leading models and of the log density; ∞ (null in JSON) for chains
    /// that stand still in different places. Indicators that are nearly always the same do not count.
    pub rhat: f64,
    /// The smallest effective sample size of these.
    pub effective: f64,
    /// Accepted moves since the burn-in.
    pub acceptance: Acceptance,
    /// How many chains there are.
    pub chains: usize,
    /// States kept of each chain.
    pub kept: usize,
    /// What may be wrong.
    pub warnings: Vec<String>,
    /// What to do with the answer.
    pub verdict: Verdict,
    /// States of all chains, equally weighted, those of the first chain first. There is no q, so its densities are not numbers.
    #[serde(skip)]
    pub draws: Draws,
}

/// Indicators whose mean is as near to 0 or 1 as this say little about mixing.
const RARE: f64 = 0.005;
/// Jumps that are accepted less often than this deserve a word.
const FEW_JUMPS: f64 = 1e-3;

impl Chains {
    /// Sums up; nothing if there are too few states for diagnostics.
    pub(super) fn new(
        problem: &dyn Problem,
        workers: &Workers,
        settings: &RjmcmcSettings,
        batches: Vec<ChainBatch<'_>>,
    ) -> Option<Self> {
        let mut acceptance = Acceptance::default();
        batches.iter().for_each(|batch| acceptance.join(batch.acceptance()));
        let mut draws = Draws::default();
        batches.into_iter().flat_map(|batch| batch.walkers).for_each(|walker| draws.append(walker.kept));
        let kept = draws.len() / settings.chains;
        if kept < 4 {
            return None;
        }
        let visits = Visits::new(problem.space(), &draws, kept);
        let mut diagnosis = Diagnosis::new(draws.len());
        diagnosis.add(&draws.log_target.chunks_exact(kept).collect::<Vec<_>>());
        let inclusion = visits.inclusion(workers, &mut diagnosis);
        let models = visits.models(problem.space(), workers, settings.leading, &mut diagnosis);
        let Diagnosis { rhat, effective } = diagnosis;
        let warnings = warnings(settings, &acceptance, &visits);
        let verdict = verdict(settings, rhat, effective, &warnings);
        Some(Self {
            models,
            inclusion,
            rhat,
            effective,
            acceptance,
            chains: settings.chains,
            kept,
            warnings,
            verdict,
            draws,
        })
    }
}

/// Which model each chain was at, state by state.
struct Visits<'a> {
    draws: &'a Draws,
    kept: usize,
    models: Vec<Model>,
    counts: Vec<usize>,
    /// The model of each state.
    trace: Vec<u32>,
}

/// An indicator along all chains, and what is to be known of it.
struct Indicator {
    share: f64,
    diagnosis: Option<(Diagnosis, f64)>,
}

impl<'a> Visits<'a> {
    fn new(space: &dyn ModelSpace, draws: &'a Draws, kept: usize) -> Self {
        let mut numbers: HashMap<Model, u32> = HashMap::new();
        let (mut models, mut counts, mut trace) = (Vec::new(), Vec::new(), Vec::with_capacity(draws.len()));
        let mut word = vec![0; draws.width];
        for row in 0..draws.len() {
            word.copy_from_slice(draws.word(row));
            space.canonical(&mut word);
            let number = numbers.get(word.as_slice()).copied().unwrap_or_else(|| {
                let (model, number) = (Model::from(word.as_slice()), models.len() as u32);
                models.push(model.clone());
                counts.push(0);
                numbers.insert(model, number);
                number
            });
            counts[number as usize] += 1;
            trace.push(number);
        }
        Self { draws, kept, models, counts, trace }
    }

    /// Diagnoses several indicators side by side; `is` says whether indicator i is 1 at a state.
    fn indicators(
        &self,
        workers: &Workers,
        count: usize,
        is: impl Fn(usize, usize) -> bool + Sync + Send,
    ) -> Vec<Indicator> {
        let mut found: Vec<Indicator> = (0..count).map(|_| Indicator { share: 0.0, diagnosis: None }).collect();
        workers.for_each(&mut found, |i, indicator| {
            let values: Vec<f64> = (0..self.draws.len()).map(|row| f64::from(u8::from(is(i, row)))).collect();
            indicator.share = values.iter().sum::<f64>() / values.len() as f64;
            let mut diagnosis = Diagnosis::new(values.len());
            let error = diagnosis.add(&values.chunks_exact(self.kept).collect::<Vec<_>>());
            indicator.diagnosis = error.map(|error| (diagnosis, error));
        });
        found
    }

    fn inclusion(&self, workers: &Workers, worst: &mut Diagnosis) -> Vec<Inclusion> {
        let found = self.indicators(workers, self.draws.width, |bit, row| self.draws.word(row)[bit] == 1);
        found.iter().for_each(|indicator| indicator.count_in(worst));
        let inclusion = |indicator: &Indicator| Inclusion {
            probability: indicator.estimate(worst.effective),
            rhat: indicator.diagnosis.as_ref().map(|(diagnosis, _)| diagnosis.rhat),
            effective: indicator.diagnosis.as_ref().map(|(diagnosis, _)| diagnosis.effective),
        };
        found.iter().map(inclusion).collect()
    }

    /// Probabilities of all models that were visited. Leading models have standard errors of their own indicator; the others
    /// the smallest effective sample size of all.
    fn models(
        &self,
        space: &dyn ModelSpace,
        workers: &Workers,
        leading: usize,
        worst: &mut Diagnosis,
    ) -> Vec<ModelShare> {
        let mut order: Vec<usize> = (0..self.models.len()).collect();
        order.sort_by(|&a, &b| self.counts[b].cmp(&self.counts[a]).then_with(|| self.models[a].cmp(&self.models[b])));
        let found =
            self.indicators(workers, leading.min(order.len()), |place, row| self.trace[row] as usize == order[place]);
        found.iter().for_each(|indicator| indicator.count_in(worst));
        let share = |(place, &model): (usize, &usize)| {
            let value = self.counts[model] as f64 / self.draws.len() as f64;
            let by_size = Estimate { value, se: share_error(value, worst.effective) };
            ModelShare {
                model: self.models[model].clone(),
                label: space.label(&self.models[model]),
                draws: self.counts[model],
                probability: found.get(place).map_or(by_size, |indicator| indicator.estimate(worst.effective)),
            }
        };
        order.iter().enumerate().map(share).collect()
    }

    /// How many chains stayed at one model.
    fn standing_still(&self) -> usize {
        self.trace.chunks_exact(self.kept).filter(|chain| chain.iter().all(|model| *model == chain[0])).count()
    }
}

impl Indicator {
    /// Lets the worst of all know.
    fn count_in(&self, worst: &mut Diagnosis) {
        if let Some((diagnosis, _)) = &self.diagnosis
            && (RARE..=1.0 - RARE).contains(&self.share)
        {
            worst.join(diagnosis);
        }
    }

    fn estimate(&self, effective: f64) -> Estimate {
        let by_size = share_error(self.share, effective);
        Estimate { value: self.share, se: self.diagnosis.as_ref().map_or(by_size, |(_, error)| *error) }
    }
}

fn warnings(settings: &RjmcmcSettings, acceptance: &Acceptance, visits: &Visits<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let wanted = settings.sweeps / settings.thin;
    if visits.kept < wanted {
        warnings.push(format!("stopped after {} of {} sweeps", visits.kept * settings.thin, settings.sweeps));
    }
    let still = visits.standing_still();
    if still > 0 && visits.models.len() > 1 {
        warnings.push(format!("{still} of {} chains never left their model", settings.chains));
    }
    let mut jumps = acceptance.birth;
    jumps.join(&acceptance.death);
    jumps.join(&acceptance.swap);
    if jumps.rate() < FEW_JUMPS {
        let share = 100.0 * jumps.rate();
        warnings.push(format!("only {share:.3} % of jumps between models were accepted"));
    }
    warnings
}

fn verdict(settings: &RjmcmcSettings, rhat: f64, effective: f64, warnings: &[String]) -> Verdict {
    let shown = format!("R̂ = {rhat:.3}, effective sample size {effective:.0}");
    if rhat <= settings.max_rhat && effective >= settings.min_effective {
        return Verdict { kind: VerdictKind::Trust, text: format!("trust: {shown}") };
    }
    let because = warnings.first().map_or(String::new(), |warning| format!("; {warning}"));
    let text = format!(
        "do not trust: {shown}{because}; R̂ should be at most {} and the effective sample size at least {}; run the chains longer",
        settings.max_rhat, settings.min_effective
    );
    Verdict { kind: VerdictKind::DoNotTrust, text }
}
