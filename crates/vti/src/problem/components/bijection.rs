//! Between the free coordinates of components, standard normal under the prior, and their parameters.
//!
//! With u ~ N(0, I) the parameters θ(u) follow their prior exactly, so log |det ∂θ/∂u| = Σ log φ(u) − log p(θ), whatever the laws of the
//! parameters are. An independent parameter is θ = F⁻¹(Φ(u)). Ascending ones come from k + 1 spacings with Dirichlet shares, made by
//! stick breaking: with concentration 1 their cumulative sums are the order statistics of k uniform numbers.

use crate::prior::{Dirichlet, Distribution, Prior};
use crate::problem::Bijection;
use crate::space::{ComponentKind, Components, Law, ModelSpace};
use crate::stats::{ln_gamma, normal_cdf, normal_log_density, normal_quantile};

/// Numbers of one parameter of all blocks, one after another.
struct Column<'a> {
    values: &'a [f64],
    width: usize,
    place: usize,
    count: usize,
}

impl Column<'_> {
    fn at(&self, block: usize) -> f64 {
        self.values[block * self.width + self.place]
    }

    fn iter(&self) -> impl Iterator<Item = f64> {
        (0..self.count).map(|block| self.at(block))
    }
}

/// The free coordinates of a kind's parameters: where that of a block's parameter is, none for the first share and for what is known.
fn free_place(kind: &ComponentKind, block: usize, parameter: usize) -> Option<usize> {
    if kind.parameters[parameter].law.is_known() {
        return None;
    }
    let place = block * kind.free_width() + kind.free_before(parameter);
    match kind.share().map(|share| kind.free_before(share)) {
        None => Some(place),
        Some(share) if place < share => Some(place),
        Some(share) if place == share => None,
        Some(_) => Some(place - 1),
    }
}

/// The free coordinates of one parameter of all blocks; k − 1 of a share.
fn gather(kind: &ComponentKind, count: usize, parameter: usize, free: &[f64], to: &mut Vec<f64>) {
    to.clear();
    to.extend((0..count).filter_map(|block| Some(free[free_place(kind, block, parameter)?])));
}

/// Writes numbers to the free coordinates of one parameter of all blocks.
fn scatter(kind: &ComponentKind, count: usize, parameter: usize, from: &[f64], free: &mut [f64]) {
    let places = (0..count).filter_map(|block| free_place(kind, block, parameter));
    places.zip(from).for_each(|(place, value)| free[place] = *value);
}

/// Room for positions beside their smallest spacings.
fn room(low: f64, high: f64, minimum: f64, count: usize) -> f64 {
    high - low - minimum * (count + 1) as f64
}

/// `log p(θ)` of a model's parameters, natural ones; −∞ where blocks are out of order.
pub(super) fn log_prior(space: &Components, counts: &[usize], natural: &[f64]) -> f64 {
    let (globals, mut rest) = natural.split_at(space.globals().len());
    let mut log_prior: f64 =
        space.globals().iter().zip(globals).map(|((_, prior), value)| prior.log_density(*value)).sum();
    for (kind, &count) in space.kinds().iter().zip(counts) {
        let (own, after) = rest.split_at(count * kind.width());
        rest = after;
        for (place, parameter) in kind.parameters.iter().enumerate() {
            log_prior += law_density(&parameter.law, &Column { values: own, width: kind.width(), place, count });
        }
    }
    log_prior
}

/// The log density of one parameter of all blocks.
fn law_density(law: &Law, column: &Column<'_>) -> f64 {
    let independent = |prior: &Prior| column.iter().map(|value| prior.log_density(value)).sum::<f64>();
    let count = column.count;
    match law {
        Law::Independent(prior) => independent(prior),
        Law::Ordered(prior) => {
            let is_ordered = (1..count).all(|block| column.at(block - 1) <= column.at(block));
            if is_ordered { ln_gamma(count as f64 + 1.0) + independent(prior) } else { f64::NEG_INFINITY }
        }
        &Law::Spaced { low, high, minimum, concentration } => {
            let room = room(low, high, minimum, count);
            let shares: Vec<f64> = spacings(low, high, column).map(|spacing| (spacing - minimum) / room).collect();
            if shares.iter().any(|share| *share < 0.0) {
                return f64::NEG_INFINITY;
            }
            Dirichlet(concentration).log_density(&shares) - count as f64 * room.ln()
        }
        Law::Shares(concentration) if count > 1 => {
            Dirichlet(*concentration).log_density(&column.iter().collect::<Vec<f64>>())
        }
        Law::Shares(_) | Law::Known(_) => 0.0,
    }
}

/// The k + 1 spacings between ends and positions.
fn spacings(low: f64, high: f64, column: &Column<'_>) -> impl Iterator<Item = f64> {
    let before = move |block: usize| if block == 0 { low } else { column.at(block - 1) };
    (0..=column.count).map(move |block| if block == column.count { high } else { column.at(block) } - before(block))
}

/// The gradient of [`log_prior`] with respect to one parameter of all blocks.
fn law_slopes(law: &Law, column: &Column<'_>, to: &mut Vec<f64>) {
    to.clear();
    match law {
        Law::Independent(prior) | Law::Ordered(prior) => to.extend(column.iter().map(|value| prior.slope(value))),
        &Law::Spaced { low, high, minimum, concentration } => {
            let by_spacing: Vec<f64> =
                spacings(low, high, column).map(|spacing| (concentration - 1.0) / (spacing - minimum)).collect();
            to.extend(by_spacing.windows(2).map(|pair| pair[0] - pair[1]));
        }
        Law::Shares(concentration) => to.extend(column.iter().map(|share| (concentration - 1.0) / share)),
        Law::Known(_) => to.resize(column.count, 0.0),
    }
}

/// Adds the gradient of [`log_prior`] to that of a likelihood.
pub(super) fn add_slopes(space: &Components, counts: &[usize], natural: &[f64], gradient: &mut [f64]) {
    let mut start = space.globals().len();
    for (place, (_, prior)) in space.globals().iter().enumerate() {
        gradient[place] += prior.slope(natural[place]);
    }
    let mut slopes = Vec::new();
    for (kind, &count) in space.kinds().iter().zip(counts) {
        let width = kind.width();
        for (place, parameter) in kind.parameters.iter().enumerate() {
            law_slopes(&parameter.law, &Column { values: &natural[start..], width, place, count }, &mut slopes);
            let places = (0..count).map(|block| start + block * width + place);
            places.zip(&slopes).for_each(|(to, slope)| gradient[to] += slope);
        }
        start += count * width;
    }
}

/// Parameters of one law from their free coordinates.
fn law_from_normal(law: &Law, count: usize, free: &[f64], to: &mut Vec<f64>) {
    to.clear();
    match law {
        Law::Independent(prior) => to.extend(free.iter().map(|&u| prior.from_normal(u))),
        Law::Ordered(prior) => {
            let shares = dirichlet(1.0, free, count + 1);
            // From the nearer end, so that both tails keep their digits.
            let mut below = 0.0;
            for share in &shares[..count] {
                below += share;
                to.push(below);
            }
            let mut rest = 0.0;
            for (value, share) in to.iter_mut().zip(&shares[1..]).rev() {
                rest += share;
                let z = if *value < 0.5 { normal_quantile(*value) } else { -normal_quantile(rest) };
                *value = prior.from_normal(z);
            }
        }
        &Law::Spaced { low, high, minimum, concentration } => {
            let room = room(low, high, minimum, count);
            let mut sum = 0.0;
            for (block, share) in dirichlet(concentration, free, count + 1)[..count].iter().enumerate() {
                sum += share;
                to.push((low + minimum * (block + 1) as f64 + room * sum).min(high - minimum * (count - block) as f64));
            }
        }
        Law::Shares(concentration) => to.extend(dirichlet(*concentration, free, count)),
        Law::Known(values) => to.extend((0..count).map(|block| known(values, block))),
    }
}

/// What is known of a block.
pub(super) fn known(values: &[f64], block: usize) -> f64 {
    values.get(block).or(values.first()).copied().unwrap_or(f64::NAN)
}

/// So many shares; a single one is 1, and none is none.
fn dirichlet(concentration: f64, free: &[f64], parts: usize) -> Vec<f64> {
    let mut shares = vec![1.0; parts];
    if parts > 1 {
        Dirichlet(concentration).from_normal(free, &mut shares);
    }
    shares
}

/// The reverse of [`law_from_normal`].
fn law_to_normal(law: &Law, column: &Column<'_>, to: &mut Vec<f64>) {
    to.clear();
    let count = column.count;
    let mut unshare = |concentration: f64, shares: &[f64]| {
        to.resize(shares.len().saturating_sub(1), f64::NAN);
        if shares.iter().all(|share| *share >= 0.0) && shares.len() > 1 {
            Dirichlet(concentration).to_normal(shares, to);
        }
    };
    match law {
        Law::Independent(prior) => to.extend(column.iter().map(|value| prior.to_normal(value))),
        Law::Ordered(prior) => {
            let scores: Vec<f64> = column.iter().map(|value| prior.to_normal(value)).collect();
            let shares: Vec<f64> = (0..=count)
                .map(|block| {
                    let before = if block == 0 { f64::NEG_INFINITY } else { scores[block - 1] };
                    normal_mass(before, scores.get(block).copied().unwrap_or(f64::INFINITY))
                })
                .collect();
            unshare(1.0, &shares);
        }
        &Law::Spaced { low, high, minimum, concentration } => {
            let room = room(low, high, minimum, count);
            let shares: Vec<f64> = spacings(low, high, column).map(|spacing| (spacing - minimum) / room).collect();
            unshare(concentration, &shares);
        }
        Law::Shares(concentration) => unshare(*concentration, &column.iter().collect::<Vec<f64>>()),
        Law::Known(_) => {}
    }
}

/// Φ(b) − Φ(a), without cancellation in either tail.
fn normal_mass(a: f64, b: f64) -> f64 {
    if a > 0.0 { normal_cdf(-a) - normal_cdf(-b) } else { normal_cdf(b) - normal_cdf(a) }
}

/// From d/dθ of one parameter of all blocks to d/du.
fn law_pull_back(law: &Law, column: &Column<'_>, free: &[f64], by_natural: &[f64], by_free: &mut Vec<f64>) {
    by_free.clear();
    by_free.resize(free.len(), 0.0);
    match law {
        Law::Independent(prior) => {
            let rows = by_free.iter_mut().zip(free).zip(column.iter()).zip(by_natural);
            rows.for_each(|(((to, u), value), by)| {
                *to = by * (normal_log_density(*u) - prior.log_density(value)).exp();
            });
        }
        Law::Ordered(prior) => {
            let by_share =
                suffix_sums(column.iter().zip(by_natural).map(|(value, by)| by * (-prior.log_density(value)).exp()));
            Dirichlet(1.0).pull_back(free, &by_share, by_free);
        }
        &Law::Spaced { low, high, minimum, concentration } => {
            let room = room(low, high, minimum, column.count);
            let by_share = suffix_sums(by_natural.iter().map(|by| by * room));
            Dirichlet(concentration).pull_back(free, &by_share, by_free);
        }
        Law::Shares(concentration) if column.count > 1 => {
            Dirichlet(*concentration).pull_back(free, by_natural, by_free);
        }
        Law::Shares(_) | Law::Known(_) => {}
    }
}

/// Each position moves with all spacings before it: from what a function says of positions to what it says of spacings, of which the
/// last moves none.
fn suffix_sums(by_position: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut by_share: Vec<f64> = by_position.chain(std::iter::once(0.0)).collect();
    let mut sum = 0.0;
    for by in by_share.iter_mut().rev() {
        sum += *by;
        *by = sum;
    }
    by_share
}

/// The bijection of a space of components.
#[derive(Clone, Debug)]
pub(super) struct ComponentBijection {
    pub(super) space: Components,
}

impl ComponentBijection {
    fn counts(&self, active: &[u32]) -> Vec<usize> {
        self.space.counts_of(active).collect()
    }

    /// For every parameter of every kind: its kind, its place, where the free and natural numbers of the kind begin, and the count.
    fn each(&self, counts: &[usize], mut work: impl FnMut(&ComponentKind, usize, usize, usize, usize)) {
        let (mut free, mut natural) = (self.space.globals().len(), self.space.globals().len());
        for (kind, &count) in self.space.kinds().iter().zip(counts) {
            (0..kind.width()).for_each(|place| work(kind, place, free, natural, count));
            free += kind.free_dim(count);
            natural += count * kind.width();
        }
    }
}

impl Bijection for ComponentBijection {
    fn free_len(&self) -> usize {
        self.space.max_dim()
    }

    fn natural_len(&self) -> usize {
        self.space.natural_len()
    }

    fn natural_dim(&self, active: &[u32]) -> usize {
        let kinds = self.space.kinds().iter().zip(self.space.counts_of(active));
        self.space.globals().len() + kinds.map(|(kind, count)| kind.width() * count).sum::<usize>()
    }

    fn natural_places(&self, active: &[u32]) -> Vec<usize> {
        let mut next = self.space.globals().len();
        let mut places: Vec<usize> = (0..next).collect();
        for (kind, count) in self.space.kinds().iter().zip(self.space.counts_of(active)) {
            places.extend(next..next + count * kind.width());
            next += kind.counts.end() * kind.width();
        }
        places
    }

    fn to_natural(&self, active: &[u32], free: &[f64], natural: &mut [f64]) -> f64 {
        let counts = self.counts(active);
        for ((to, u), (_, prior)) in natural.iter_mut().zip(free).zip(self.space.globals()) {
            *to = prior.from_normal(*u);
        }
        let (mut own, mut values) = (Vec::new(), Vec::new());
        self.each(&counts, |kind, place, from, to, count| {
            gather(kind, count, place, &free[from..], &mut own);
            law_from_normal(&kind.parameters[place].law, count, &own, &mut values);
            values.iter().enumerate().for_each(|(block, value)| natural[to + block * kind.width() + place] = *value);
        });
        let dim = self.natural_dim(active);
        free[..active.len()].iter().map(|&u| normal_log_density(u)).sum::<f64>()
            - log_prior(&self.space, &counts, &natural[..dim])
    }

    fn to_free(&self, active: &[u32], natural: &[f64], free: &mut [f64]) -> f64 {
        let counts = self.counts(active);
        for ((to, value), (_, prior)) in free.iter_mut().zip(natural).zip(self.space.globals()) {
            *to = prior.to_normal(*value);
        }
        let mut own = Vec::new();
        self.each(&counts, |kind, place, to, from, count| {
            let column = Column { values: &natural[from..], width: kind.width(), place, count };
            law_to_normal(&kind.parameters[place].law, &column, &mut own);
            scatter(kind, count, place, &own, &mut free[to..]);
        });
        let dim = self.natural_dim(active);
        free[..active.len()].iter().map(|&u| normal_log_density(u)).sum::<f64>()
            - log_prior(&self.space, &counts, &natural[..dim])
    }

    fn pull_back(&self, active: &[u32], free: &[f64], natural_gradient: &[f64], gradient: &mut [f64]) {
        let counts = self.counts(active);
        let mut natural = vec![0.0; self.natural_dim(active)];
        self.to_natural(active, free, &mut natural);
        // d/du [f(θ) + Σ log φ(u) − log p(θ)]: the density of u without its prior, and the prior of u.
        for (place, (_, prior)) in self.space.globals().iter().enumerate() {
            let by_natural = natural_gradient[place] - prior.slope(natural[place]);
            gradient[place] =
                by_natural * (normal_log_density(free[place]) - prior.log_density(natural[place])).exp() - free[place];
        }
        let (mut own, mut slopes, mut by_free) = (Vec::new(), Vec::new(), Vec::new());
        self.each(&counts, |kind, place, from, at, count| {
            let law = &kind.parameters[place].law;
            let column = Column { values: &natural[at..], width: kind.width(), place, count };
            gather(kind, count, place, &free[from..], &mut own);
            law_slopes(law, &column, &mut slopes);
            let given = |block: usize| natural_gradient[at + block * kind.width() + place];
            slopes.iter_mut().enumerate().for_each(|(block, slope)| *slope = given(block) - *slope);
            law_pull_back(law, &column, &own, &slopes, &mut by_free);
            by_free.iter_mut().zip(&own).for_each(|(by, u)| *by -= u);
            scatter(kind, count, place, &by_free, &mut gradient[from..]);
        });
    }
}
