//! Tables made to order.

use vti::problem::selection::{RegressionData, Term};
use vti::random::{Purpose, Stream};

use crate::table::term;

/// With the square of each of the first so many terms, less its mean, as a term of its own; a term of two values is its own square.
pub(super) fn with_squares(mut table: RegressionData, count: usize) -> RegressionData {
    let square = |of: &Term| {
        let mean = of.values.iter().sum::<f64>() / of.values.len() as f64;
        term(&format!("{}^2", of.name), of.values.iter().map(|x| (x - mean).powi(2)).collect())
    };
    let squares: Vec<Term> = table.terms.iter().take(count).filter(|term| !is_binary(term)).map(square).collect();
    table.terms.extend(squares);
    table
}

fn is_binary(term: &Term) -> bool {
    term.values.iter().all(|&value| value == 0.0 || value == 1.0)
}

/// With logarithms in place of all numbers, which are positive.
pub(super) fn logarithms(mut table: RegressionData) -> RegressionData {
    let all = std::iter::once(&mut table.response).chain(table.terms.iter_mut().map(|term| &mut term.values));
    all.for_each(|column| column.iter_mut().for_each(|value| *value = value.ln()));
    table
}

/// Groups of covariates that are correlated within; a covariate of each of the first `relevant` groups matters.
#[derive(Clone, Copy)]
pub(super) struct Groups {
    pub(super) terms: usize,
    pub(super) rows: usize,
    pub(super) group: usize,
    pub(super) correlation: f64,
    pub(super) relevant: usize,
    pub(super) effect: f64,
    pub(super) noise: f64,
    pub(super) seed: u64,
}

/// What a response is made of: its linear predictor, and chance.
#[derive(Clone, Copy)]
pub(super) enum Response {
    Normal,
    Binary,
    Count,
}

impl Groups {
    pub(super) fn table(&self, response: Response) -> RegressionData {
        let mut stream = Stream::new(self.seed, Purpose::Other(14), self.terms as u64, self.rows as u64);
        let (common, own) = (self.correlation.sqrt(), (1.0 - self.correlation).sqrt());
        let mut columns: Vec<Vec<f64>> = Vec::with_capacity(self.terms);
        let mut shared = Vec::new();
        for place in 0..self.terms {
            if place % self.group == 0 {
                shared = (0..self.rows).map(|_| stream.normal()).collect();
            }
            columns.push(shared.iter().map(|shared: &f64| common * shared + own * stream.normal()).collect());
        }
        let sign = |group: usize| if group.is_multiple_of(2) { self.effect } else { -self.effect };
        let predictor = |row: usize| {
            (0..self.relevant).map(|group| sign(group) * columns[(group * self.group) % self.terms][row]).sum::<f64>()
        };
        let made = |row: usize, stream: &mut Stream| match response {
            Response::Normal => predictor(row) + self.noise * stream.normal(),
            Response::Binary => f64::from(u8::from(stream.uniform() < 1.0 / (1.0 + (-predictor(row)).exp()))),
            Response::Count => stream.poisson((0.5 + predictor(row)).exp()),
        };
        let response = (0..self.rows).map(|row| made(row, &mut stream)).collect();
        let terms = columns.into_iter().enumerate().map(|(place, values)| term(&format!("x{}", place + 1), values));
        RegressionData { response_name: "y".into(), response, terms: terms.collect(), ..RegressionData::default() }
    }
}
