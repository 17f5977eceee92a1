//! Correction by chains that are exact in the limit.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::CheckError;
use super::chain::{Accepted, Chains};
use super::correction::{Correction, ModelCorrection};
use super::importance::Watch;
use super::verdict::Verdict;
use crate::device::Device;
use crate::optimise::SettingError;
use crate::posterior::{Draws, Posterior};
use crate::space::{Model, ModelSpace};
use crate::stats::{Diagnosis, Estimate, share_error};

/// How chains move within a model, in the flow's latent space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalMove {
    /// A Gaussian step.
    RandomWalk,
    /// A Gaussian step after half a step along the gradient.
    #[default]
    Langevin,
}

/// Settings of a refinement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefineSettings {
    /// Chains, side by side.
    pub chains: usize,
    /// Iterations that are kept.
    pub iterations: usize,
    /// Iterations before that, in which the local step is adapted.
    pub warmup: usize,
    /// Local moves after each independence move.
    pub local_moves: usize,
    /// How to move locally.
    pub local: LocalMove,
    /// Parameters are kept every so many iterations.
    pub thin: usize,
    /// R̂ must not exceed this.
    pub max_rhat: f64,
    /// The effective sample size must reach this.
    pub min_effective: f64,
    /// For how many of the most probable models R̂ and effective sample size are computed.
    pub leading: usize,
}

impl Default for RefineSettings {
    fn default() -> Self {
        Self {
            chains: 128,
            iterations: 500,
            warmup: 200,
            local_moves: 2,
            local: LocalMove::default(),
            thin: 5,
            max_rhat: 1.02,
            min_effective: 400.0,
            leading: 20,
        }
    }
}

impl RefineSettings {
    /// Refuses settings that make no sense.
    pub fn check(&self) -> Result<(), SettingError> {
        let at_least =
            |what, value: usize, least: usize, range| SettingError::check(what, value as f64, value >= least, range);
        at_least("chains", self.chains, 2, "at least 2")?;
        at_least("iterations", self.iterations, MIN_ITERATIONS, "at least 4")?;
        at_least("thin", self.thin, 1, "at least 1")?;
        SettingError::check("max_rhat", self.max_rhat, self.max_rhat >= 1.0, "at least 1")?;
        SettingError::check("min_effective", self.min_effective, self.min_effective >= 0.0, "at least 0")
    }
}

/// What chains found.
#[derive(Clone, Debug, Serialize)]
pub struct Refined {
    /// How many chains there were.
    pub chains: usize,
    /// Corrected model probabilities.
    pub correction: Correction,
    /// The largest split-R̂ of the indicators of leading models and of the log weight; ∞ (null in JSON) for chains that
    /// stand still in different places.
    pub rhat: f64,
    /// The smallest effective sample size of these.
    pub effective: f64,
    /// Shares of accepted moves.
    pub accepted_jumps: f64,
    /// Shares of accepted local moves; not a number where there were none.
    pub accepted_moves: f64,
    /// What to do with the answer.
    pub verdict: Verdict,
    /// Draws of all chains, equally weighted: a draw of each chain in turn.
    #[serde(skip)]
    pub draws: Draws,
}

/// Runs chains with q as independence proposal across models and local moves within them.
pub fn refine<D: Device>(posterior: &Posterior<D>, settings: &RefineSettings) -> Result<Refined, CheckError> {
    let refined = refine_watched(posterior, settings, &mut |_, _| true)?;
    refined.ok_or(CheckError::NoWeight)
}

/// The fewest iterations that say anything.
const MIN_ITERATIONS: usize = 4;

/// [`refine`], while somebody looks on who hears how many iterations of how many are done and says whether to go on: with fewer
/// iterations chains say less, and with next to none of them nothing.
pub fn refine_watched<D: Device>(
    posterior: &Posterior<D>,
    settings: &RefineSettings,
    watch: Watch<'_>,
) -> Result<Option<Refined>, CheckError> {
    settings.check()?;
    let space = posterior.family().space();
    let (width, stride) = (space.arities().len(), posterior.family().natural_len());
    let mut chains = Chains::new(posterior, settings.chains, settings.local)?;
    let (mut jumps, mut moves) = (Accepted::default(), Accepted::default());
    let mut visits = Visits::new(settings.chains);
    let mut draws = Draws { width, stride, ..Draws::default() };
    let all = settings.warmup + settings.iterations;
    for iteration in 0..all {
        if !watch(iteration, all) {
            if iteration < settings.warmup + MIN_ITERATIONS {
                return Ok(None);
            }
            break;
        }
        let kept = iteration >= settings.warmup;
        let number = iteration as u64 + 1;
        let jumped = chains.jump(number)?;
        let mut moved = Accepted::default();
        for local in 0..settings.local_moves {
            moved.join(chains.walk(number, local)?);
        }
        if !kept {
            chains.adapt(number, moved);
            continue;
        }
        jumps.join(jumped);
        moves.join(moved);
        for chain in 0..settings.chains {
            visits.add(chain, chains.word(chain), chains.log_weight(chain), space);
            if (iteration - settings.warmup).is_multiple_of(settings.thin) {
                chains.keep(chain, &mut draws);
            }
        }
    }
    let diagnosed = visits.correct(posterior, settings.leading)?;
    let limits = (settings.max_rhat, settings.min_effective);
    Ok(Some(Refined {
        chains: settings.chains,
        verdict: Verdict::of_chains(diagnosed.rhat, diagnosed.effective, limits, &diagnosed.correction)
            .unless(posterior.warnings()),
        correction: diagnosed.correction,
        rhat: diagnosed.rhat,
        effective: diagnosed.effective,
        accepted_jumps: jumps.rate(),
        accepted_moves: moves.rate(),
        draws,
    }))
}

/// Which model each chain was at, iteration by iteration.
struct Visits {
    /// The model that each word means.
    words: BTreeMap<Box<[u16]>, u32>,
    numbers: HashMap<Model, u32>,
    models: Vec<Model>,
    counts: Vec<usize>,
    chains: Vec<Vec<u32>>,
    /// `log w` along each chain: where it mixes badly, so do the parameters.
    log_weights: Vec<Vec<f64>>,
}

struct Diagnosed {
    correction: Correction,
    rhat: f64,
    effective: f64,
}

impl Visits {
    fn new(chains: usize) -> Self {
        Self {
            words: BTreeMap::new(),
            numbers: HashMap::new(),
            models: Vec::new(),
            counts: Vec::new(),
            chains: vec![Vec::new(); chains],
            log_weights: vec![Vec::new(); chains],
        }
    }

    fn add(&mut self, chain: usize, word: &[u16], log_weight: f64, space: &dyn ModelSpace) {
        self.log_weights[chain].push(log_weight);
        let number = match self.words.get(word) {
            Some(&number) => number,
            None => {
                let mut canonical = word.to_vec();
                space.canonical(&mut canonical);
                let number = *self.numbers.entry(Model::from(canonical)).or_insert_with_key(|model| {
                    self.models.push(model.clone());
                    self.counts.push(0);
                    self.models.len() as u32 - 1
                });
                self.words.insert(word.into(), number);
                number
            }
        };
        self.counts[number as usize] += 1;
        self.chains[chain].push(number);
    }

    /// Probabilities of all models that were visited. Leading models have standard errors and diagnostics of their own
    /// indicator; the others the smallest effective sample size of those.
    fn correct<D: Device>(&self, posterior: &Posterior<D>, leading: usize) -> Result<Diagnosed, CheckError> {
        let total: usize = self.counts.iter().sum();
        let share = |model: usize| self.counts[model] as f64 / total as f64;
        let mut order: Vec<usize> = (0..self.models.len()).collect();
        order.sort_by(|&a, &b| self.counts[b].cmp(&self.counts[a]).then_with(|| self.models[a].cmp(&self.models[b])));
        let mut errors = HashMap::new();
        let mut diagnosis = Diagnosis::new(total);
        diagnosis.add(&slices(&self.log_weights));
        for &model in order.iter().take(leading) {
            let indicators: Vec<Vec<f64>> = self.chains.iter().map(|chain| indicator(chain, model as u32)).collect();
            // A model that chains never left, or never met, has an indicator without spread: nothing to diagnose.
            if let Some(error) = diagnosis.add(&slices(&indicators)) {
                errors.insert(model, error);
            }
        }
        let Diagnosis { rhat, effective } = diagnosis;
        let words: Vec<u16> = self.words.keys().flat_map(|word| word.iter().copied()).collect();
        let mut log_q = vec![0.0; self.words.len()];
        posterior.log_prob_models(&words, &mut log_q)?;
        let mut q = vec![0.0; self.models.len()];
        self.words.values().zip(&log_q).for_each(|(&model, log_q)| q[model as usize] += log_q.exp());
        let space = posterior.family().space();
        let models = order.iter().map(|&model| {
            let value = share(model);
            ModelCorrection {
                model: self.models[model].clone(),
                label: space.label(&self.models[model]),
                q: q[model],
                corrected: Estimate {
                    value,
                    se: errors.get(&model).copied().unwrap_or_else(|| share_error(value, effective)),
                },
                evidence: None,
                khat: None,
                draws: self.counts[model],
            }
        });
        Ok(Diagnosed { correction: Correction::estimated(models.collect()), rhat, effective })
    }
}

/// 1 where a chain was at a model.
fn indicator(chain: &[u32], model: u32) -> Vec<f64> {
    chain.iter().map(|&at| f64::from(u8::from(at == model))).collect()
}

fn slices(traces: &[Vec<f64>]) -> Vec<&[f64]> {
    traces.iter().map(Vec::as_slice).collect()
}
