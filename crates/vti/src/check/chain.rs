//! Chains on models and latent variables, side by side as the rows of one batch.
//!
//! A chain's state is (m, z), its target `π(m, z) = p(m) η(T(z | m) | m) |det ∇T(z | m)|`: the posterior seen through the
//! flow, where it is close to a standard normal. Two moves alternate, each of which leaves π as it is:
//!
//! * **independence**: (m', z') from q, accepted with probability min(1, w'/w), `w = π(m, z) / (q(m) ν(z))`;
//! * **local**: z' near z within the model, by a random walk or along the gradient of log π.

use super::CheckError;
use super::refine::LocalMove;
use crate::device::Device;
use crate::family::{FamilyError, Pass};
use crate::flow::Passes;
use crate::models::Draw;
use crate::posterior::{Draws, Posterior};
use crate::random::{Purpose, Stream};
use crate::simd::Real;

/// How often chains look for a place to start from.
const MAX_ATTEMPTS: u64 = 50;

/// Random streams per iteration: models, z of the independence move, decisions, local moves.
const STREAMS_PER_ITERATION: u64 = 4;

/// All chains.
pub(super) struct Chains<'p, D: Device> {
    posterior: &'p Posterior<D>,
    pass: Pass<D>,
    count: usize,
    width: usize,
    stride: usize,
    words: Vec<u16>,
    dims: Vec<usize>,
    z: Vec<f64>,
    /// Gradient of log π with respect to z, where local moves follow it.
    gradient: Vec<f64>,
    /// `log π(m, z)`, and `log w`.
    log_target: Vec<f64>,
    log_weight: Vec<f64>,
    /// `log q(m)`.
    log_q: Vec<f64>,
    /// Natural parameters, and `log q(m, θ)` and `log p(m) η(θ | m)` with respect to them.
    natural: Vec<Vec<f64>>,
    log_q_point: Vec<f64>,
    log_target_point: Vec<f64>,
    log_arrangement_point: Vec<f64>,
    local: LocalMove,
    /// Logarithm of the local step.
    log_step: f64,
    buffers: Gradients<D>,
}

/// For gradients with respect to z.
struct Gradients<D: Device> {
    theta: Vec<D::Real>,
    z: Vec<D::Real>,
    parameters: D::Buffer,
}

/// How many moves were accepted, of how many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Accepted {
    pub(super) moves: f64,
    pub(super) accepted: f64,
}

impl Accepted {
    pub(super) fn rate(self) -> f64 {
        if self.moves > 0.0 { self.accepted / self.moves } else { f64::NAN }
    }

    fn add(&mut self, accepted: bool) {
        self.moves += 1.0;
        self.accepted += f64::from(u8::from(accepted));
    }

    pub(super) fn join(&mut self, other: Self) {
        self.moves += other.moves;
        self.accepted += other.accepted;
    }
}

impl<'p, D: Device> Chains<'p, D> {
    /// Chains that start with draws from q.
    pub(super) fn new(posterior: &'p Posterior<D>, count: usize, local: LocalMove) -> Result<Self, CheckError> {
        let family = &posterior.family;
        let (width, stride) = (family.space().arities().len(), family.space().max_dim());
        let passes = if local == LocalMove::Langevin { Passes::Training } else { Passes::Evaluation };
        let pass = family.pass(count, passes)?;
        let parameters = family.device.buffer(family.flow.parameter_count())?;
        let mut chains = Self {
            pass,
            count,
            width,
            stride,
            words: vec![0; count * width],
            dims: vec![0; count],
            z: vec![0.0; count * stride],
            gradient: vec![0.0; count * stride],
            log_target: vec![f64::NEG_INFINITY; count],
            log_weight: vec![f64::NEG_INFINITY; count],
            log_q: vec![0.0; count],
            natural: vec![Vec::new(); count],
            log_q_point: vec![0.0; count],
            log_target_point: vec![0.0; count],
            log_arrangement_point: vec![0.0; count],
            local,
            log_step: 0.0,
            buffers: Gradients {
                theta: vec![D::Real::ZERO; count * stride],
                z: vec![D::Real::ZERO; count * stride],
                parameters,
            },
            posterior,
        };
        // Draws whose target is undefined are no place to start from.
        for attempt in 0..MAX_ATTEMPTS {
            chains.jump(u64::MAX / STREAMS_PER_ITERATION - 1 - attempt)?;
            if chains.log_target.iter().all(|log_target| log_target.is_finite()) {
                return Ok(chains);
            }
        }
        Err(CheckError::NoWeight)
    }

    pub(super) fn log_weight(&self, chain: usize) -> f64 {
        self.log_weight[chain]
    }

    /// Adds the state of a chain to draws.
    pub(super) fn keep(&self, chain: usize, draws: &mut Draws) {
        draws.words.extend_from_slice(self.word(chain));
        draws.dims.push(self.natural[chain].len());
        draws.theta.extend_from_slice(&self.natural[chain]);
        draws.theta.resize(draws.dims.len() * draws.stride, f64::NAN);
        draws.log_q_model.push(self.log_q[chain]);
        draws.log_q.push(self.log_q_point[chain]);
        draws.log_target.push(self.log_target_point[chain]);
        draws.log_arrangement.push(self.log_arrangement_point[chain]);
    }

    pub(super) fn word(&self, chain: usize) -> &[u16] {
        &self.words[chain * self.width..][..self.width]
    }

    fn draw(&self, iteration: u64, part: u64) -> Draw {
        Draw { seed: self.posterior.seed(), purpose: Purpose::Refine, step: iteration * STREAMS_PER_ITERATION + part }
    }

    /// The independence move of all chains.
    pub(super) fn jump(&mut self, iteration: u64) -> Result<Accepted, FamilyError> {
        let (models, reference, decide) = (self.draw(iteration, 0), self.draw(iteration, 1), self.draw(iteration, 2));
        self.posterior.family.draw_models(models, &mut self.pass, self.count)?;
        self.pass.plan(&self.posterior.family, |_| false)?;
        self.pass.draw_z(reference);
        self.evaluate()?;
        let mut accepted = Accepted::default();
        for chain in 0..self.count {
            let log_weight =
                self.proposed_target(chain) - self.pass.log_q_model[chain] - self.pass.log_reference[chain];
            let accept = accepts(log_weight - self.log_weight[chain], &mut decide.row(chain));
            if accept {
                self.words[chain * self.width..][..self.width].copy_from_slice(self.pass.word(chain));
                self.log_q[chain] = self.pass.log_q_model[chain];
                self.take(chain);
                self.log_weight[chain] = log_weight;
            }
            accepted.add(accept);
        }
        Ok(accepted)
    }

    /// A local move of all chains whose model has parameters.
    pub(super) fn walk(&mut self, iteration: u64, number: usize) -> Result<Accepted, FamilyError> {
        // Each local move of an iteration has rows of its own.
        let draw = self.draw(iteration, 3);
        let count = self.count;
        let row = |chain: usize| number * count + chain;
        self.pass.resize(self.count);
        self.pass.words.copy_from_slice(&self.words);
        self.pass.plan(&self.posterior.family, |_| false)?;
        for chain in 0..self.count {
            let mut stream = draw.row(row(chain));
            let step = self.step(chain);
            let places: Vec<usize> = self.pass.places(chain).collect();
            for (i, place) in self.place(chain).zip(places) {
                let proposal = self.z[i] + self.pull(i, step) + step * stream.normal();
                self.pass.z[place] = D::Real::from_f64(proposal);
            }
        }
        self.evaluate()?;
        let mut accepted = Accepted::default();
        for chain in 0..self.count {
            if self.dims[chain] == 0 {
                continue;
            }
            let gain = self.proposed_target(chain) - self.log_target[chain] + self.asymmetry(chain);
            // A stream of its own, after the proposals.
            let mut stream = draw.row(row(chain) + usize::MAX / 2);
            let accept = accepts(gain, &mut stream);
            if accept {
                self.take(chain);
                self.log_weight[chain] = self.log_target[chain] - self.log_q[chain] - self.pass.log_reference[chain];
            }
            accepted.add(accept);
        }
        Ok(accepted)
    }

    /// Adapts the local step to what was accepted: towards the best rates known for targets of many dimensions (Roberts and
    /// Rosenthal 2001).
    pub(super) fn adapt(&mut self, iteration: u64, accepted: Accepted) {
        let goal = if self.local == LocalMove::Langevin { 0.574 } else { 0.234 };
        if accepted.moves > 0.0 {
            self.log_step += (accepted.rate() - goal) / (1.0 + iteration as f64).sqrt();
        }
    }

    /// The local step of a chain, scaled by its dimension.
    fn step(&self, chain: usize) -> f64 {
        let dim = self.dims[chain].max(1) as f64;
        self.log_step.exp() * if self.local == LocalMove::Langevin { dim.powf(-1.0 / 6.0) } else { dim.powf(-0.5) }
    }

    /// How far the gradient takes coordinate `i`.
    fn pull(&self, i: usize, step: f64) -> f64 {
        if self.local == LocalMove::Langevin { 0.5 * step * step * self.gradient[i] } else { 0.0 }
    }

    /// Log ratio of the proposal densities, back over forth.
    fn asymmetry(&self, chain: usize) -> f64 {
        if self.local != LocalMove::Langevin {
            return 0.0;
        }
        let step = self.step(chain);
        let term = |(i, place): (usize, usize)| {
            let (from, to) = (self.z[i], self.pass.z[place].to_f64());
            let forth = to - from - self.pull(i, step);
            let back = from - to - 0.5 * step * step * self.buffers.z[place].to_f64();
            forth * forth - back * back
        };
        self.place(chain).zip(self.pass.places(chain)).map(term).sum::<f64>() / (2.0 * step * step)
    }

    fn place(&self, chain: usize) -> std::ops::Range<usize> {
        chain * self.stride..chain * self.stride + self.dims[chain]
    }

    /// Densities, and gradients if wanted, at the proposals in the pass.
    fn evaluate(&mut self) -> Result<(), FamilyError> {
        let Self { posterior, pass, buffers, .. } = self;
        let family = &posterior.family;
        pass.forward(family)?;
        pass.density(family)?;
        if self.local == LocalMove::Langevin {
            for row in 0..pass.rows() {
                for i in pass.places(row) {
                    buffers.theta[i] = D::Real::from_f64(pass.gradient[i]);
                }
            }
            pass.backward(family, &buffers.theta, |_| D::Real::ONE, &mut buffers.parameters)?;
            pass.z_gradient(family, &mut buffers.z)?;
        }
        Ok(())
    }

    /// `log π` of a proposal.
    fn proposed_target(&self, chain: usize) -> f64 {
        let log_prior = self.posterior.problem().log_prior(self.pass.word(chain));
        log_prior + self.pass.log_eta[chain] + self.pass.log_det[chain]
    }

    /// Moves a chain to its proposal.
    fn take(&mut self, chain: usize) {
        self.dims[chain] = self.pass.dim(chain);
        for (i, place) in self.place(chain).zip(self.pass.places(chain)) {
            self.z[i] = self.pass.z[place].to_f64();
            self.gradient[i] = self.buffers.z[place].to_f64();
        }
        self.log_target[chain] = self.proposed_target(chain);
        let jacobian = self.pass.log_jacobian[chain];
        self.log_q_point[chain] = self.log_q[chain] + self.pass.log_q_theta(chain) - jacobian;
        let arrangement = self.pass.log_arrangement[chain];
        self.log_target_point[chain] = self.log_target[chain] - self.pass.log_det[chain] - jacobian - arrangement;
        self.log_arrangement_point[chain] = arrangement;
        self.natural[chain].clear();
        self.natural[chain].extend_from_slice(self.pass.natural(chain));
    }
}

/// Metropolis: a gain that is not a number is refused, one from an impossible state accepted.
fn accepts(gain: f64, stream: &mut Stream) -> bool {
    gain.is_finite() && stream.uniform().ln() < gain || gain == f64::INFINITY
}
