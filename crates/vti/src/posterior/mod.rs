//! What was learned: draws, densities, model probabilities.

mod conjugate;
mod draws;
mod graphs;
mod saved;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

pub use conjugate::ConjugatePosterior;
pub use draws::{BlockDraws, Draws};
pub use graphs::GraphPosterior;
pub use saved::LoadError;
pub(crate) use saved::Saved;

use crate::device::Device;
use crate::family::{Family, FamilyError, Pass};
use crate::flow::Passes;
use crate::models::{BlockScores, Draw};
use crate::objective;
use crate::problem::Problem;
use crate::random::Purpose;
use crate::space::{Catalogue, Model};
use crate::state::{State, StateError};
use crate::stats::Estimate;
use crate::store;
use crate::workers::{Spare, Workers};

/// Up to so many models their probabilities are computed one by one.
const MAX_ENUMERATED: usize = 1 << 16;

/// Rows of a batch of draws.
const BATCH_ROWS: usize = 1024;

/// Streams of their own for each part of a batch of draws; the last part is for the models.
fn step(batch: u32, part: u32) -> u64 {
    u64::from(batch) << 32 | u64::from(part)
}

/// The density `q(m) q(θ_m | m)` after training. It owns what it needs; reading takes `&self` and may go on in several threads
/// at once.
pub struct Posterior<D: Device> {
    pub(crate) family: Family<D>,
    /// Memory for evaluations.
    passes: Spare<Pass<D>>,
    seed: u64,
    warnings: Vec<String>,
    left_out: Vec<String>,
    trained_rows: u64,
}

impl<D: Device> std::fmt::Debug for Posterior<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Posterior").field("family", &self.family).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// The probability of a model under q.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ModelProbability {
    /// The model; where several words mean one, the one that represents them.
    pub model: Model,
    /// What people read.
    pub label: String,
    /// Its probability, exact (with standard error 0) or estimated from draws.
    pub probability: Estimate,
}

/// A model with natural parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The model.
    pub model: Model,
    /// Its parameters.
    pub theta: Vec<f64>,
}

impl<D: Device> Posterior<D> {
    /// The posterior that a family has become, with what its trainer was not happy with. Where the run ended before q(m) was
    /// prepared, whatever needs it is an error.
    pub fn new(mut family: Family<D>, seed: u64, warnings: Vec<String>) -> Self {
        family.models.end_exploration(&family.device);
        Self { family, passes: Spare::default(), seed, warnings, left_out: Vec::new(), trained_rows: 0 }
    }

    /// With how many of its own draws it has learned from.
    pub(crate) fn with_trained_rows(self, trained_rows: u64) -> Self {
        Self { trained_rows, ..self }
    }

    /// With what there was no time for when it was trained.
    pub(crate) fn with_left_out(self, left_out: Vec<String>) -> Self {
        Self { left_out, ..self }
    }

    /// Calls `work` with memory for a batch of up to [`BATCH_ROWS`] rows.
    fn with_pass<T>(&self, work: impl FnOnce(&mut Pass<D>) -> Result<T, FamilyError>) -> Result<T, FamilyError> {
        self.passes.lend(|| self.family.pass(BATCH_ROWS, Passes::Evaluation), work)
    }

    /// The family behind it.
    pub fn family(&self) -> &Family<D> {
        &self.family
    }

    /// The problem it answers.
    pub fn problem(&self) -> &Arc<dyn Problem> {
        &self.family.problem
    }

    /// The host's threads beside its device.
    pub(crate) fn workers(&self) -> &Workers {
        self.family.device.workers()
    }

    /// What the trainer was not happy with: a check then trusts nothing.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What there was no time for when it was trained.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// How many of its own draws it has learned from, a lesson aside; 0 where that is not known.
    pub(crate) fn trained_rows(&self) -> u64 {
        self.trained_rows
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// All words, where they are numbered.
    pub fn catalogue(&self) -> Option<&Catalogue> {
        self.family.models.catalogue()
    }

    /// The family behind it, its seed and what its trainer was not happy with, to go on from.
    pub(crate) fn into_parts(self) -> (Family<D>, u64, Vec<String>) {
        (self.family, self.seed, self.warnings)
    }

    /// The same posterior as it was when its family had this state.
    pub(crate) fn restored(mut self, mut state: State) -> Result<Self, StateError> {
        self.family.restore(&mut state)?;
        let Self { family, seed, warnings, left_out, trained_rows, .. } = self;
        Ok(Self::new(family, seed, warnings).with_left_out(left_out).with_trained_rows(trained_rows))
    }

    /// Natural parameters that a model uses, as places in [`Problem::parameter_names`].
    pub fn active_parameters(&self, model: &[u16]) -> Vec<usize> {
        active_parameters(&*self.family.problem, model)
    }

    /// `count` independent draws; the same `batch` gives the same draws again.
    pub fn draw(&self, count: usize, batch: u32) -> Result<Draws, FamilyError> {
        self.draw_for(count, Purpose::Evaluation, batch, false)
    }

    /// Draws with the target's log density at each.
    pub fn draw_with_target(&self, count: usize, batch: u32) -> Result<Draws, FamilyError> {
        self.draw_for(count, Purpose::Evaluation, batch, true)
    }

    /// Draws for a purpose of their own.
    pub(crate) fn draw_for(
        &self,
        count: usize,
        purpose: Purpose,
        batch: u32,
        target: bool,
    ) -> Result<Draws, FamilyError> {
        let words = self.draw_words(count, purpose, batch)?;
        self.draw_given(&words.0, Some(&words.1), purpose, batch, target)
    }

    /// `log q(m)` of words.
    pub(crate) fn log_prob_models(&self, words: &[u16], log_q: &mut [f64]) -> Result<(), FamilyError> {
        Ok(self.family.models.log_prob(&self.family.device, words, log_q)?)
    }

    /// Words and their log probabilities.
    pub(crate) fn draw_words(
        &self,
        count: usize,
        purpose: Purpose,
        batch: u32,
    ) -> Result<(Vec<u16>, Vec<f64>), FamilyError> {
        let width = self.family.space().arities().len();
        let (mut words, mut log_q) = (vec![0; count * width], vec![0.0; count]);
        let draw = Draw { seed: self.seed, purpose, step: step(batch, u32::MAX) };
        self.family.models.sample(&self.family.device, draw, &mut words, &mut log_q)?;
        Ok((words, log_q))
    }

    /// Draws of parameters for given words.
    pub(crate) fn draw_given(
        &self,
        words: &[u16],
        log_q: Option<&[f64]>,
        purpose: Purpose,
        batch: u32,
        target: bool,
    ) -> Result<Draws, FamilyError> {
        let width = self.family.space().arities().len();
        let count = words.len() / width;
        let mut known = vec![0.0; count];
        match log_q {
            Some(log_q) => known.copy_from_slice(log_q),
            None => self.log_prob_models(words, &mut known)?,
        }
        let mut draws = Draws::default();
        for (index, (words, log_q)) in words.chunks(BATCH_ROWS * width).zip(known.chunks(BATCH_ROWS)).enumerate() {
            draws.append(self.with_pass(|pass| {
                self.take_words(pass, words, log_q)?;
                pass.draw_z(Draw { seed: self.seed, purpose, step: step(batch, index as u32) });
                pass.forward(&self.family)?;
                self.collect(pass, target)
            })?);
        }
        (draws.width, draws.stride) = (width, self.family.natural_len());
        Ok(draws)
    }

    /// Takes words into the pass.
    fn take_words(&self, pass: &mut Pass<D>, words: &[u16], log_q: &[f64]) -> Result<(), FamilyError> {
        pass.resize(log_q.len());
        pass.words.copy_from_slice(words);
        pass.log_q_model.copy_from_slice(log_q);
        pass.plan(&self.family, |_| false)
    }

    /// What a forward pass found, in natural parameters.
    fn collect(&self, pass: &mut Pass<D>, target: bool) -> Result<Draws, FamilyError> {
        if target {
            pass.density(&self.family)?;
        } else {
            pass.find_natural(&self.family)?;
        }
        let stride = self.family.natural_len();
        let mut draws = Draws {
            width: self.family.space().arities().len(),
            words: pass.words.clone(),
            stride,
            dims: pass.natural_dims[..pass.rows()].to_vec(),
            theta: vec![f64::NAN; pass.rows() * stride],
            log_q_model: pass.log_q_model.clone(),
            ..Draws::default()
        };
        if target {
            let BlockDraws { keys, log_weights } = &mut draws.blocks;
            pass.block_scores(keys, log_weights);
            log_weights.iter_mut().for_each(|log_h| *log_h = -*log_h);
        }
        for row in 0..pass.rows() {
            draws.theta[row * stride..][..draws.dims[row]].copy_from_slice(pass.natural(row));
            draws.log_q.push(pass.log_q_model[row] + pass.log_q_theta(row) - pass.log_jacobian[row]);
            if target {
                let log_prior = self.family.problem.log_prior(pass.word(row));
                // The weight of an arrangement is no part of the density.
                let log_arrangement = pass.log_arrangement[row];
                draws.log_target.push(log_prior + pass.log_eta[row] - pass.log_jacobian[row] - log_arrangement);
                draws.log_arrangement.push(log_arrangement);
            }
        }
        Ok(draws)
    }

    /// `log q(m, θ)` at given points; −∞ for parameters outside their support. Words that the space does not have are errors.
    pub fn log_q(&self, points: &[Point]) -> Result<Vec<f64>, FamilyError> {
        let mut found = Vec::with_capacity(points.len());
        for (chunk, points) in points.chunks(BATCH_ROWS).enumerate() {
            self.log_q_chunk(chunk * BATCH_ROWS, points, &mut found)?;
        }
        Ok(found)
    }

    fn log_q_chunk(&self, first: usize, points: &[Point], found: &mut Vec<f64>) -> Result<(), FamilyError> {
        let space = self.family.space();
        let wrong = |index: usize, reason: String| FamilyError::Point { point: first + index, reason };
        for (index, point) in points.iter().enumerate() {
            space.check(&point.model).map_err(|error| wrong(index, error.to_string()))?;
        }
        let words: Vec<u16> = points.iter().flat_map(|point| point.model.iter().copied()).collect();
        let mut log_q = vec![0.0; points.len()];
        self.log_prob_models(&words, &mut log_q)?;
        self.with_pass(|pass| {
            self.take_words(pass, &words, &log_q)?;
            let mut jacobians = vec![0.0; points.len()];
            for (row, point) in points.iter().enumerate() {
                jacobians[row] = pass.take_natural(&self.family, row, &point.theta).map_err(|expected| {
                    wrong(row, format!("{} parameters, but the model has {expected}", point.theta.len()))
                })?;
                let places: Vec<usize> = pass.places(row).collect();
                let v = &mut pass.theta;
                if !places.iter().all(|&place| v[place].is_finite()) {
                    // Outside its support: any point will do for the pass, and the answer is −∞.
                    places.iter().for_each(|&place| v[place] = 0.0);
                    jacobians[row] = f64::INFINITY;
                }
            }
            pass.inverse(&self.family)?;
            for row in 0..points.len() {
                found.push(log_q[row] + pass.log_q_theta(row) - jacobians[row]);
            }
            Ok(())
        })
    }

    /// Scores of blocks and their keys, where q(m) is a product of them.
    pub fn block_scores(&self) -> Option<&BlockScores> {
        self.family.models.block_scores()
    }

    /// Probabilities of models under q, most probable first: of all where they can be enumerated, otherwise of those among
    /// `draws` draws.
    pub fn model_probabilities(&self, draws: usize) -> Result<Vec<ModelProbability>, FamilyError> {
        let space = self.family.space();
        let mut sums: HashMap<Model, f64> = HashMap::new();
        let mut add = |word: &[u16], weight: f64| {
            let mut word = word.to_vec();
            space.canonical(&mut word);
            *sums.entry(word.into()).or_insert(0.0) += weight;
        };
        let numbered = Catalogue::new(space, MAX_ENUMERATED).ok();
        let exact = match self.family.models.catalogue().or(numbered.as_ref()) {
            Some(catalogue) => {
                let width = space.arities().len();
                let words = catalogue.words();
                let mut log_q = vec![0.0; catalogue.len()];
                self.log_prob_models(&words, &mut log_q)?;
                words.chunks_exact(width).zip(&log_q).for_each(|(word, log_q)| add(word, log_q.exp()));
                true
            }
            None => {
                let (words, _) = self.draw_words(draws, Purpose::Summary, 0)?;
                let share = 1.0 / draws.max(1) as f64;
                words.chunks_exact(space.arities().len()).for_each(|word| add(word, share));
                false
            }
        };
        let mut found: Vec<ModelProbability> = sums
            .into_iter()
            .map(|(model, value)| {
                let se = if exact { 0.0 } else { (value * (1.0 - value) / draws.max(1) as f64).max(0.0).sqrt() };
                ModelProbability { label: space.label(&model), model, probability: Estimate { value, se } }
            })
            .collect();
        found.sort_by(|a, b| b.probability.value.total_cmp(&a.probability.value).then(a.model.cmp(&b.model)));
        Ok(found)
    }

    /// The bound `−L` from fresh draws, over those whose target is defined; not a number if none is.
    pub fn elbo(&self, draws: usize) -> Result<Estimate, FamilyError> {
        let draws = self.draw_for(draws, Purpose::Summary, 1, true)?;
        Ok(objective::bound((0..draws.len()).map(|row| draws.log_ratio(row))))
    }

    /// Writes everything to a file.
    pub fn save(&self, path: &Path) -> Result<(), LoadError> {
        let mut state = State::default();
        state.put_state("family", self.family.state()?);
        let said = (self.warnings.clone(), self.left_out.clone());
        let saved = Saved::of(&self.family, self.seed, said, None);
        Ok(Saved { trained_rows: self.trained_rows, ..saved }.write(path, &state)?)
    }

    /// Reads a posterior, or the checkpoint of a run as far as it has come.
    pub fn load(problem: Arc<dyn Problem>, device: D, path: &Path) -> Result<Self, LoadError> {
        Self::parse(problem, device, path, &store::bytes(path)?)
    }

    /// The same of the bytes of a file, `path` as errors name it.
    pub fn parse(problem: Arc<dyn Problem>, device: D, path: &Path, bytes: &[u8]) -> Result<Self, LoadError> {
        let (saved, mut state) = Saved::parse::<D>(path, bytes, &*problem)?;
        let mut family = saved.family(problem, device, &state)?;
        family.restore(&mut state.take_state("family"))?;
        family.prepare_in_silence();
        let posterior = Self::new(family, saved.seed, saved.warnings).with_left_out(saved.left_out);
        Ok(posterior.with_trained_rows(saved.trained_rows))
    }
}

/// Natural parameters that a model of a problem uses, as places in [`Problem::parameter_names`].
fn active_parameters(problem: &dyn Problem, model: &[u16]) -> Vec<usize> {
    let space = problem.space();
    let mut mask = vec![false; space.max_dim()];
    space.mark_active(model, &mut mask);
    let active: Vec<u32> = (0..mask.len() as u32).filter(|&c| mask[c as usize]).collect();
    match problem.constraints() {
        None => active.into_iter().map(|c| c as usize).collect(),
        Some(constraints) => constraints.natural_places(&active),
    }
}
