//! The posterior that nobody needs to learn: all models of a Gaussian selection, with their parameters, in closed form.

use super::{Draws, Point, active_parameters};
use crate::problem::Problem;
use crate::problem::selection::{Average, Conjugate, Enumeration, ExactError, Selection, averages};
use crate::random::{Purpose, Stream};
use crate::space::ModelSpace;
use crate::workers::Workers;

/// The posterior of models and parameters of a selection whose evidences are known in closed form: the same questions as to a
/// [`Posterior`](super::Posterior), and exact answers.
#[derive(Clone, Debug)]
pub struct ExactPosterior<'a> {
    selection: &'a Selection,
    enumeration: Enumeration,
    /// Sums of the models' probabilities up to each.
    sums: Vec<f64>,
    seed: u64,
}

impl<'a> ExactPosterior<'a> {
    /// Enumerates all models, or says why that is not affordable.
    pub fn new(selection: &'a Selection, workers: &Workers, seed: u64) -> Result<Self, ExactError> {
        let enumeration = Enumeration::in_closed_form(selection, workers)?;
        let add = |sum: &mut f64, probability: &f64| {
            *sum += probability;
            Some(*sum)
        };
        let sums = enumeration.probabilities.iter().scan(0.0, add).collect();
        Ok(Self { selection, enumeration, sums, seed })
    }

    /// What is asked.
    pub fn selection(&self) -> &'a Selection {
        self.selection
    }

    /// All models with their probabilities.
    pub fn enumeration(&self) -> &Enumeration {
        &self.enumeration
    }

    /// Seed of its draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Parameters that a model uses, as places among their names.
    pub fn active_parameters(&self, model: &[u16]) -> Vec<usize> {
        active_parameters(self.selection, model)
    }

    /// Parameters in the units of the data, averaged over all models.
    pub fn averages(&self, workers: &Workers) -> Result<Vec<Average>, ExactError> {
        averages(self.selection, workers, &self.enumeration)
    }

    /// `count` independent draws; the same `batch` gives the same draws again, on any number of threads. What stands in the
    /// place of q is the posterior itself.
    pub fn draw(&self, count: usize, batch: u32, workers: &Workers) -> Result<Draws, ExactError> {
        let (width, stride) = (self.enumeration.terms, self.selection.space().max_dim());
        let mut drawn: Vec<(usize, usize)> = (0..count).map(|row| (self.draw_model(batch, row).1, row)).collect();
        drawn.sort_unstable();
        // What is known of a model serves all draws of it.
        let mut groups: Vec<Group<'_>> = drawn.chunk_by(|a, b| a.0 == b.0).map(Group::new).collect();
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
        for group in &groups {
            let number = group.rows[0].0;
            let (model, log_q) = (self.enumeration.model(number), self.enumeration.probabilities[number].ln());
            for (&(_, row), Drawn { theta, log_density, log_target }) in group.rows.iter().zip(&group.found) {
                draws.words[row * width..][..width].copy_from_slice(&model);
                draws.dims[row] = theta.len();
                draws.theta[row * stride..][..theta.len()].copy_from_slice(theta);
                draws.log_q_model[row] = log_q;
                draws.log_q[row] = log_q + log_density;
                draws.log_target[row] = *log_target;
            }
        }
        Ok(draws)
    }

    /// The stream of a draw, and its model by its number.
    fn draw_model(&self, batch: u32, row: usize) -> (Stream, usize) {
        let mut stream = Stream::new(self.seed, Purpose::Evaluation, u64::from(batch), row as u64);
        let last = self.sums.len() - 1;
        let place = stream.uniform() * self.sums[last];
        (stream, self.sums.partition_point(|&sum| sum <= place).min(last))
    }

    /// `log p(m, θ | y)` at a point; −∞ for parameters outside their support, not a number for what is no model, and where
    /// there are more or fewer parameters than the model has.
    pub fn log_prob(&self, point: &Point) -> Result<f64, ExactError> {
        let Some(probability) = self.enumeration.probability(&point.model) else { return Ok(f64::NAN) };
        Ok(probability.ln() + Conjugate::new(self.selection, &point.model)?.log_density(&point.theta))
    }
}

/// Draws of one model.
struct Group<'a> {
    /// The model's number and the row, of each.
    rows: &'a [(usize, usize)],
    found: Vec<Drawn>,
}

/// A draw of parameters.
struct Drawn {
    theta: Vec<f64>,
    log_density: f64,
    log_target: f64,
}

impl<'a> Group<'a> {
    fn new(rows: &'a [(usize, usize)]) -> Self {
        Self { rows, found: Vec::new() }
    }

    fn fill(&mut self, posterior: &ExactPosterior<'_>, batch: u32) -> Result<(), ExactError> {
        let (selection, enumeration) = (posterior.selection, &posterior.enumeration);
        let model = enumeration.model(self.rows[0].0);
        let (conjugate, log_prior) = (Conjugate::new(selection, &model)?, selection.log_prior(&model));
        for &(_, row) in self.rows {
            let (mut stream, _) = posterior.draw_model(batch, row);
            let theta = conjugate.draw(&mut stream);
            let log_joint = selection.log_density(&model, &theta, &mut vec![0.0; theta.len()]);
            let log_target = log_prior + log_joint.unwrap_or(f64::NAN);
            self.found.push(Drawn { log_density: conjugate.log_density(&theta), theta, log_target });
        }
        Ok(())
    }
}
