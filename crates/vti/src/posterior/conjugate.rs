//! The posterior that nobody needs to learn: models of a Gaussian selection with their weights, and their parameters in closed
//! form.

use super::{Draws, Point, active_parameters};
use crate::problem::Problem;
use crate::problem::selection::{Average, Conjugate, Enumeration, ExactError, Selection, WeighedModels, averages};
use crate::random::{Purpose, Stream, Weighted};
use crate::space::{Model, ModelSpace};
use crate::workers::Workers;

/// The posterior of models and parameters of a selection whose evidences are known in closed form: the same questions as to a
/// [`Posterior`](super::Posterior). Where all models were enumerated the answers are exact; of models that a search met they are
/// exact given the model.
#[derive(Clone, Debug)]
pub struct ConjugatePosterior<'a> {
    selection: &'a Selection,
    models: Models,
    /// Places of models by their shares; none without any.
    places: Option<Weighted>,
    /// `log p(y)`, over all models.
    log_evidence: f64,
    seed: u64,
}

/// What draws are made of.
#[derive(Clone, Debug)]
enum Models {
    All(Enumeration),
    Met(WeighedModels),
}

impl Models {
    fn shares(&self) -> &[f64] {
        match self {
            Self::All(enumeration) => &enumeration.probabilities,
            Self::Met(models) => models.shares(),
        }
    }

    fn model(&self, place: usize) -> Model {
        match self {
            Self::All(enumeration) => enumeration.model(place),
            Self::Met(models) => models.word(place).into(),
        }
    }
}

impl<'a> ConjugatePosterior<'a> {
    /// Enumerates all models, or says why that is not affordable.
    pub fn enumerate(selection: &'a Selection, workers: &Workers, seed: u64) -> Result<Self, ExactError> {
        let enumeration = Enumeration::in_closed_form(selection, workers)?;
        let log_evidence = enumeration.log_evidence;
        Ok(Self::new(selection, Models::All(enumeration), log_evidence, seed))
    }

    /// Of models that were met, and an estimate of the evidence over all models.
    pub fn of_models(selection: &'a Selection, models: WeighedModels, log_evidence: f64, seed: u64) -> Self {
        Self::new(selection, Models::Met(models), log_evidence, seed)
    }

    fn new(selection: &'a Selection, models: Models, log_evidence: f64, seed: u64) -> Self {
        let places = Weighted::new(models.shares().iter().copied());
        Self { selection, models, places, log_evidence, seed }
    }

    /// What is asked.
    pub fn selection(&self) -> &'a Selection {
        self.selection
    }

    /// All models with their probabilities, where they were enumerated.
    pub fn enumeration(&self) -> Option<&Enumeration> {
        match &self.models {
            Models::All(enumeration) => Some(enumeration),
            Models::Met(_) => None,
        }
    }

    /// `log p(y)`, over all models.
    pub fn log_evidence(&self) -> f64 {
        self.log_evidence
    }

    /// Seed of its draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Parameters that a model uses, as places among their names.
    pub fn active_parameters(&self, model: &[u16]) -> Vec<usize> {
        active_parameters(self.selection, model)
    }

    /// Parameters in the units of the data, averaged over the models.
    pub fn averages(&self, workers: &Workers) -> Result<Vec<Average>, ExactError> {
        match &self.models {
            Models::All(enumeration) => averages(self.selection, workers, enumeration),
            Models::Met(models) => models.averages(self.selection, workers),
        }
    }

    /// `count` independent draws; the same `batch` gives the same draws again, on any number of threads. What stands in the
    /// place of q is the posterior itself.
    pub fn draw(&self, count: usize, batch: u32, workers: &Workers) -> Result<Draws, ExactError> {
        let space = self.selection.space();
        let (width, stride) = (space.arities().len(), space.max_dim());
        let mut drawn: Vec<(usize, usize)> = (0..count).map(|row| (self.draw_model(batch, row).1, row)).collect();
        drawn.sort_unstable();
        // What is known of a model serves all draws of it.
        let mut groups: Vec<Group<'_>> =
            drawn.chunk_by(|a, b| a.0 == b.0).map(|rows| Group::new(rows, self.models.model(rows[0].0))).collect();
        workers.try_for_each(&mut groups, |_, group| group.fill(self, batch))?;
        let mut draws = Draws {
            width,
            words: vec![0; count * width],
            stride,
            dims: vec![0; count],
            theta: vec![f64::NAN; count * stride],
            log_q_model: vec![0.0; count],
            log_q: vec![0.0; count],
            log_target: vec![0.0; count],
            log_arrangement: vec![0.0; count],
            ..Draws::default()
        };
        for Group { rows, model, log_q_model, found } in &groups {
            for (&(_, row), Drawn { theta, log_density, log_target }) in rows.iter().zip(found) {
                draws.words[row * width..][..width].copy_from_slice(model);
                draws.dims[row] = theta.len();
                draws.theta[row * stride..][..theta.len()].copy_from_slice(theta);
                draws.log_q_model[row] = *log_q_model;
                draws.log_q[row] = log_q_model + log_density;
                draws.log_target[row] = *log_target;
            }
        }
        Ok(draws)
    }

    /// The stream of a draw, and its model by its place.
    fn draw_model(&self, batch: u32, row: usize) -> (Stream, usize) {
        let mut stream = Stream::new(self.seed, Purpose::Evaluation, u64::from(batch), row as u64);
        let place = self.places.as_ref().map_or(0, |places| places.draw(&mut stream));
        (stream, place)
    }

    /// `log p(m | y)` of any model, by its evidence, with its parameters in closed form.
    fn given(&self, model: &[u16]) -> Result<(f64, Conjugate), ExactError> {
        let conjugate = Conjugate::new(self.selection, model)?;
        Ok((self.selection.log_prior(model) + conjugate.log_evidence() - self.log_evidence, conjugate))
    }

    /// `log p(m, θ | y)` at a point; −∞ for parameters outside their support, not a number for what is no model, and where
    /// there are more or fewer parameters than the model has.
    pub fn log_prob(&self, point: &Point) -> Result<f64, ExactError> {
        if !self.selection.space().is_allowed(&point.model) {
            return Ok(f64::NAN);
        }
        let (log_model, conjugate) = self.given(&point.model)?;
        Ok(log_model + conjugate.log_density(&point.theta))
    }
}

/// Draws of one model.
struct Group<'a> {
    /// The model's place and the row, of each.
    rows: &'a [(usize, usize)],
    model: Model,
    log_q_model: f64,
    found: Vec<Drawn>,
}

/// A draw of parameters.
struct Drawn {
    theta: Vec<f64>,
    log_density: f64,
    log_target: f64,
}

impl<'a> Group<'a> {
    fn new(rows: &'a [(usize, usize)], model: Model) -> Self {
        Self { rows, model, log_q_model: f64::NAN, found: Vec::new() }
    }

    fn fill(&mut self, posterior: &ConjugatePosterior<'_>, batch: u32) -> Result<(), ExactError> {
        let (selection, model) = (posterior.selection, &self.model);
        let (log_q_model, conjugate) = posterior.given(model)?;
        self.log_q_model = log_q_model;
        let log_prior = selection.log_prior(model);
        for &(_, row) in self.rows {
            let (mut stream, _) = posterior.draw_model(batch, row);
            let theta = conjugate.draw(&mut stream);
            let log_joint = selection.log_density(model, &theta, &mut vec![0.0; theta.len()]);
            let log_target = log_prior + log_joint.unwrap_or(f64::NAN);
            self.found.push(Drawn { log_density: conjugate.log_density(&theta), theta, log_target });
        }
        Ok(())
    }
}
