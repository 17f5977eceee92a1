//! Whether the model fits the data, from an answer's draws.

use super::subject::Asked;
use super::{Answer, Findings, Samples, Subject};
use crate::predictive::{
    FitKind, GoOn, LookSettings, MisfitKind, ModelFit, Null, Outcome, OutcomeFit, Predict, look_while,
};
use crate::problem::dag::{Dag, NodeKind, Sem};
use crate::problem::selection::{Likelihood, Selection, softmax};
use crate::random::{Purpose, Stream};
use crate::stats::{effective_draws, log_sum_exp, systematic};
use crate::workers::Workers;

/// With fewer draws that have the parents of the most probable graph, a node is looked at with those it is mostly drawn with.
const MIN_DRAWS: usize = 50;

/// With fewer effective draws of a node, weights are left out: other nodes, which have no part in it, make them uneven.
const MIN_EFFECTIVE: f64 = 100.0;

impl Findings {
    /// Looks whether the model fits the data, and puts what is found into the answer; nothing for problems of one's own, whose
    /// densities have no rows, and for subjects with other parameters than the answer's.
    pub fn look_at_fit(&mut self, subject: &Subject<'_>, settings: &LookSettings, workers: &Workers) {
        self.look_at_fit_while(subject, settings, workers, &|| true);
    }

    /// The same for as long as somebody wants it; whether somebody still did in the end. Nothing is put into the answer otherwise.
    pub fn look_at_fit_while(
        &mut self,
        subject: &Subject<'_>,
        settings: &LookSettings,
        workers: &Workers,
        go_on: &GoOn<'_>,
    ) -> bool {
        let looking = &Looking { settings, workers, go_on };
        let same = subject.units().names() == self.samples.names;
        self.answer.fit = match subject.asked {
            Asked::Own | Asked::Count(_) => None,
            _ if !same => None,
            Asked::Select(selection) => selection_fit(&self.samples, subject, selection, looking),
            Asked::Dag(dag, _) => dag_fit(&self.answer, &self.samples, subject, dag, looking),
        }
        .filter(is_finite);
        go_on()
    }
}

/// How much is looked at, by whom, and for how long.
struct Looking<'a> {
    settings: &'a LookSettings,
    workers: &'a Workers,
    go_on: &'a GoOn<'a>,
}

impl Looking<'_> {
    fn at(&self, outcomes: &[Outcome<'_>], settings: &LookSettings) -> Option<ModelFit> {
        look_while(outcomes, settings, self.workers, self.go_on)
    }
}

/// Whether rows have probabilities at all: without them nothing can be said.
fn is_finite(fit: &ModelFit) -> bool {
    fit.outcomes.iter().all(|OutcomeFit { loo, gain, .. }| (loo.elpd + loo.p_loo + gain.elpd).is_finite())
}

/// Draws that count alike, by their weights, from some of all.
fn alike(log_weights: &[f64], count: usize, stream: &mut Stream) -> Vec<usize> {
    systematic(log_weights, count.min(log_weights.len()), stream.uniform()).unwrap_or_default()
}

/// The parameters of a draw as they were learned, each with its place among all.
fn learned(samples: &Samples, subject: &Subject<'_>, draw: usize) -> Vec<(usize, f64)> {
    let count = samples.names.len();
    let active = &samples.models[samples.model[draw]].active;
    let places: Vec<usize> = (0..count).filter(|&place| active[place]).collect();
    let (theta, _) = subject.units().to_learned(&places, &samples.values[draw * count..][..count]);
    places.into_iter().zip(theta).collect()
}

/// A draw of a regression.
struct Coefficients {
    scale: f64,
    /// Columns with what multiplies them.
    terms: Vec<(usize, f64)>,
}

/// Draws of a regression.
struct Regression<'a> {
    selection: &'a Selection,
    draws: Vec<Coefficients>,
}

impl Predict for &Regression<'_> {
    fn draws(&self) -> usize {
        self.draws.len()
    }

    fn scale(&self, draw: usize) -> f64 {
        self.draws[draw].scale
    }

    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]) {
        let design = self.selection.design();
        let known = |&row: &usize| design.offset().get(row).copied().unwrap_or(0.0);
        to.iter_mut().zip(rows).for_each(|(to, row)| *to = known(row));
        for &(column, b) in &self.draws[draw].terms {
            let column = design.column(column);
            to.iter_mut().zip(rows).for_each(|(to, &row)| *to += b * column[row]);
        }
    }
}

/// The logit of a category, from the predictors of all or the logarithms of their probabilities: its own less the log of the sum of
/// all others' exponentials.
fn logit(mut all: Vec<f64>, category: usize) -> f64 {
    let own = all.remove(category);
    own - log_sum_exp(&all)
}

/// Whether the response is one of its categories.
struct OneCategory<'a> {
    regression: &'a Regression<'a>,
    category: usize,
}

impl OneCategory<'_> {
    /// Predictors of all categories but the first, in one row.
    fn predictors_of(&self, draw: usize, row: usize) -> Vec<f64> {
        let design = self.regression.selection.design();
        let mut predictors = vec![0.0; design.predictors()];
        for &(place, b) in &self.regression.draws[draw].terms {
            predictors[place % design.predictors()] += b * design.column(place / design.predictors())[row];
        }
        predictors
    }
}

impl Predict for OneCategory<'_> {
    fn draws(&self) -> usize {
        self.regression.draws.len()
    }

    fn scale(&self, _: usize) -> f64 {
        f64::NAN
    }

    /// The logit of the category.
    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]) {
        for (to, &row) in to.iter_mut().zip(rows) {
            let mut all = self.predictors_of(draw, row);
            all.insert(0, 0.0);
            *to = logit(all, self.category);
        }
    }

    fn log_row(&self, draw: usize, row: usize) -> Option<f64> {
        let mut all = self.predictors_of(draw, row);
        let observed = self.regression.selection.design().response()[row] as usize;
        let own = if observed == 0 { 0.0 } else { all[observed - 1] };
        Some(own - softmax(&mut all))
    }
}

fn selection_fit(
    samples: &Samples,
    subject: &Subject<'_>,
    selection: &Selection,
    looking: &Looking<'_>,
) -> Option<ModelFit> {
    let settings = looking.settings;
    let likelihood = selection.settings().likelihood;
    let before = likelihood.own_parameters();
    let mut stream = Stream::new(settings.seed, Purpose::Fit, u64::MAX, 1);
    let draw = |draw: usize| {
        let theta = learned(samples, subject, draw);
        let scale = theta.first().filter(|_| before == 1).map_or(f64::NAN, |(_, scale)| *scale);
        Coefficients { scale, terms: theta.into_iter().skip(before).map(|(place, b)| (place - before, b)).collect() }
    };
    let draws: Vec<Coefficients> =
        alike(&samples.log_weight, settings.draws, &mut stream).into_iter().map(draw).collect();
    if draws.is_empty() {
        return None;
    }
    let design = selection.design();
    let regression = Regression { selection, draws };
    let outcome = |name: String, observed, predict| Outcome {
        name,
        observed,
        likelihood,
        offset: design.offset(),
        weights: design.weights(),
        predict,
        null: Null::Intercept,
        rows: None,
    };
    let fit = if likelihood == (Likelihood::Multinomial {}) {
        // Each category against all others.
        let indicator = |category: usize| -> Vec<f64> {
            design.response().iter().map(|&y| f64::from(u8::from(y as usize == category))).collect()
        };
        let observed: Vec<Vec<f64>> = (0..design.categories().len()).map(indicator).collect();
        let one = |(category, observed)| {
            let name = format!("{} = {}", design.response_name(), design.categories()[category]);
            outcome(name, observed, Box::new(OneCategory { regression: &regression, category }) as Box<dyn Predict>)
        };
        let outcomes: Vec<Outcome<'_>> = observed.iter().map(Vec::as_slice).enumerate().map(one).collect();
        looking.at(&outcomes, settings)?
    } else {
        looking.at(&[outcome(design.response_name().into(), design.response(), Box::new(&regression))], settings)?
    };
    Some(ModelFit { advice: selection_advice(&fit, likelihood), ..fit })
}

/// Whether one of these was found.
fn found(fit: &ModelFit, kinds: &[MisfitKind]) -> bool {
    fit.outcomes.iter().flat_map(|outcome| &outcome.misfits).any(|misfit| kinds.contains(&misfit.kind))
}

/// What can be done about a selection that does not fit.
fn selection_advice(fit: &ModelFit, likelihood: Likelihood) -> Vec<String> {
    use MisfitKind::{Bend, Calibration, Dispersion, Distribution, Outliers, Scale, Skewness, Spread, Tails};
    let mut advice = Vec::new();
    let mut add = |kinds: &[MisfitKind], text: &str| {
        if found(fit, kinds) {
            advice.push(text.to_string());
        }
    };
    match likelihood {
        Likelihood::Gaussian { .. } => {
            add(&[Tails, Outliers], "the likelihood student-t:4, or robust, lets outliers count for less");
            add(&[Skewness, Spread], "a positive response may fit better by its logarithm");
            add(&[Scale], "the likelihood gaussian, without a number, learns the scale of the errors");
        }
        Likelihood::Robust { .. } => {
            if !likelihood.has_scale() {
                add(&[Scale], "the likelihood robust, without numbers, learns the scale of the errors");
            }
            add(&[Tails, Outliers, Distribution], "the likelihood student-t:4 has tails of another shape");
            add(&[Skewness, Spread], "a positive response may fit better by its logarithm");
        }
        Likelihood::StudentT { .. } => {
            add(&[Tails, Outliers], "the likelihood student-t:DF with other degrees of freedom");
            add(&[Skewness, Spread], "a positive response may fit better by its logarithm");
        }
        Likelihood::Logistic {} | Likelihood::Multinomial {} => {}
        Likelihood::Poisson {} => add(
            &[Dispersion, Distribution, Outliers, Tails, Skewness],
            "counts that vary more or less than a Poisson distribution make this answer too sure of itself, or not sure enough: \
             further covariates may explain it",
        ),
        Likelihood::NegativeBinomial { .. } => add(
            &[Dispersion, Distribution, Outliers, Tails, Skewness],
            "counts do not vary as negative binomial ones do: further covariates, or the likelihood gaussian with logarithms \
             of the counts",
        ),
    }
    let more = |outcome: &OutcomeFit| outcome.dispersion.is_some_and(|dispersion| dispersion.ratio > 1.0);
    if likelihood == (Likelihood::Poisson {}) && fit.outcomes.iter().any(more) {
        add(&[Dispersion], "counts are overdispersed: the likelihood negative-binomial allows for it");
    }
    add(&[Bend, Calibration], "columns of squares, logarithms or products of covariates can follow what is not linear");
    advice
}

/// Draws of a node that all have the same parents.
struct Node<'a> {
    dag: &'a Dag,
    node: usize,
    parents: Vec<usize>,
    draws: Vec<Vec<f64>>,
}

impl Predict for &Node<'_> {
    fn draws(&self) -> usize {
        self.draws.len()
    }

    fn scale(&self, draw: usize) -> f64 {
        self.draws[draw].first().copied().unwrap_or(f64::NAN)
    }

    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]) {
        self.dag.node_means(self.node, &self.parents, &self.draws[draw], rows, to);
    }
}

/// Whether a node of categories is one of them.
struct OneLevel<'a> {
    node: &'a Node<'a>,
    level: usize,
    levels: usize,
}

impl OneLevel<'_> {
    /// Logarithms of the probabilities of all levels, row after row.
    fn logs(&self, draw: usize, rows: &[usize]) -> Vec<f64> {
        let Node { dag, node, parents, draws } = self.node;
        dag.category_log_probabilities(*node, parents, &draws[draw], rows)
    }
}

impl Predict for OneLevel<'_> {
    fn draws(&self) -> usize {
        self.node.draws.len()
    }

    fn scale(&self, _: usize) -> f64 {
        f64::NAN
    }

    /// The logit of the level.
    fn predictors(&self, draw: usize, rows: &[usize], to: &mut [f64]) {
        for (to, logs) in to.iter_mut().zip(self.logs(draw, rows).chunks_exact(self.levels)) {
            *to = logit(logs.to_vec(), self.level);
        }
    }

    /// Of two levels the logit is all there is to know.
    fn log_row(&self, draw: usize, row: usize) -> Option<f64> {
        let observed = self.node.dag.table().columns[self.node.node][row] as usize;
        (self.levels > 2).then(|| self.logs(draw, &[row])[observed])
    }
}

/// Each node, given its parents in the most probable graph. Averages over graphs would not do: a node that is predicted from
/// another one in some graphs, and the other way round in the rest, is rightly predicted in each, and not by their mixture.
fn dag_fit(
    answer: &Answer,
    samples: &Samples,
    subject: &Subject<'_>,
    dag: &Dag,
    looking: &Looking<'_>,
) -> Option<ModelFit> {
    let settings = looking.settings;
    let (nodes, rows) = (dag.space().nodes(), dag.table().rows());
    let set = dag.interventions().counts(nodes);
    let of_draws = |node: usize| {
        let (parents, chosen) = choose(answer, samples, dag, node, settings);
        let width = dag.space().node_width();
        let own = |place: usize| (node * width..(node + 1) * width).contains(&place);
        let theta = |draw: usize| -> Vec<f64> {
            learned(samples, subject, draw).into_iter().filter(|(place, _)| own(*place)).map(|(_, x)| x).collect()
        };
        Node { dag, node, parents, draws: chosen.into_iter().map(theta).collect() }
    };
    // Where a node was set, its equation says nothing.
    let nodes: Vec<Node<'_>> = (0..nodes).filter(|&node| set[node] < rows).map(of_draws).collect();
    if nodes.iter().any(|node| node.draws.is_empty()) {
        return None;
    }
    // Of three categories and more each is looked at, as 0 or 1.
    let levels = |node: &Node<'_>| dag.table().categories(node.node).map(<[String]>::len).filter(|count| *count > 2);
    let indicators = |node: &Node<'_>| -> Vec<Vec<f64>> {
        let column = &dag.table().columns[node.node];
        let of = |level: usize| column.iter().map(|&x| f64::from(u8::from(x == level as f64))).collect();
        (0..levels(node).unwrap_or(0)).map(of).collect()
    };
    let indicators: Vec<Vec<Vec<f64>>> = nodes.iter().map(indicators).collect();
    let outcomes = nodes.iter().zip(&indicators).flat_map(|(node, indicators)| node_outcomes(node, indicators));
    let outcomes: Vec<Outcome<'_>> = outcomes.collect();
    // Hidden units cost as much as so many rows, and so do all levels of a node.
    let units = match dag.settings().sem {
        Sem::Linear {} => 0,
        Sem::Mlp { hidden, .. } => hidden,
    };
    let most_levels = nodes.iter().filter_map(levels).max().unwrap_or(1);
    let settings = LookSettings { pairs: settings.pairs / ((1 + units / 8) * most_levels), ..*settings };
    let fit = looking.at(&outcomes, &settings)?;
    Some(ModelFit { advice: dag_advice(&fit, dag, settings.is_logged), ..fit })
}

/// A node of numbers, whether a binary node is the second of its levels, or which of several levels it is.
fn node_outcomes<'a>(node: &'a Node<'a>, indicators: &'a [Vec<f64>]) -> Vec<Outcome<'a>> {
    let (dag, number) = (node.dag, node.node);
    let (name, column) = (&dag.table().names[number], &dag.table().columns[number][..]);
    let (set, rows) = (dag.interventions(), column.len());
    let kept = (set.counts(number + 1)[number] > 0).then(|| set.rows_without(number, rows));
    let outcome = |name: String, observed: &'a [f64], likelihood, predict: Box<dyn Predict + 'a>, null| Outcome {
        name,
        observed,
        likelihood,
        offset: &[],
        weights: &[],
        predict,
        null,
        rows: kept.clone(),
    };
    let of_level = |level: usize, levels: usize| Box::new(OneLevel { node, level, levels });
    match dag.table().kind(number) {
        NodeKind::Number => {
            let likelihood = Likelihood::Gaussian { sigma: dag.settings().noise.sigma() };
            vec![outcome(name.clone(), column, likelihood, Box::new(node), Null::Zero)]
        }
        NodeKind::Categories { levels, .. } if levels.len() == 2 => {
            vec![outcome(name.clone(), column, Likelihood::Logistic {}, of_level(1, 2), Null::Intercept)]
        }
        NodeKind::Categories { levels, .. } => {
            let of = |(level, observed): (usize, &'a Vec<f64>)| {
                let name = format!("{name} = {}", levels[level]);
                outcome(name, observed, Likelihood::Multinomial {}, of_level(level, levels.len()), Null::Intercept)
            };
            indicators.iter().enumerate().map(of).collect()
        }
    }
}

/// The parents that a node is looked at with, ascending, and draws that have them.
fn choose(
    answer: &Answer,
    samples: &Samples,
    dag: &Dag,
    node: usize,
    settings: &LookSettings,
) -> (Vec<usize>, Vec<usize>) {
    let names = &dag.table().names;
    let place = |name: &String| names.iter().position(|other| other == name);
    let edges = answer.found.graphs().map_or(&[][..], |graphs| &graphs.graph.most_probable);
    let mut best: Vec<usize> =
        edges.iter().filter(|[_, to]| place(to) == Some(node)).filter_map(|[from, _]| place(from)).collect();
    best.sort_unstable();
    let parents_of = |active: &Vec<bool>| -> Vec<usize> {
        let has = |&from: &usize| dag.space().edge_coordinates(from, node).is_some_and(|edge| active[edge.start]);
        (0..names.len()).filter(has).collect()
    };
    let of_models: Vec<Vec<usize>> = samples.models.iter().map(|model| parents_of(&model.active)).collect();
    let draws_with = |parents: &Vec<usize>| -> Vec<usize> {
        let possible = |draw: &usize| samples.log_weight[*draw] > f64::NEG_INFINITY;
        (0..samples.len()).filter(possible).filter(|&draw| of_models[samples.model[draw]] == *parents).collect()
    };
    let mut draws = draws_with(&best);
    if draws.len() < MIN_DRAWS {
        let usual = of_models.iter().map(|parents| (parents, draws_with(parents)));
        if let Some((parents, more)) =
            usual.max_by_key(|(_, draws)| draws.len()).filter(|(_, more)| more.len() > draws.len())
        {
            (best, draws) = (parents.clone(), more);
        }
    }
    let mut log_weights: Vec<f64> = draws.iter().map(|&draw| samples.log_weight[draw]).collect();
    if effective_draws(&log_weights) < MIN_EFFECTIVE {
        log_weights.fill(0.0);
    }
    let mut stream = Stream::new(settings.seed, Purpose::Fit, u64::MAX, 2 + node as u64);
    let chosen = alike(&log_weights, settings.draws, &mut stream);
    (best, chosen.into_iter().map(|place| draws[place]).collect())
}

/// What can be done about graphs that do not fit.
fn dag_advice(fit: &ModelFit, dag: &Dag, is_logged: bool) -> Vec<String> {
    use MisfitKind::{Bend, Outliers, Scale, Skewness, Spread, Tails};
    if fit.kind != FitKind::DoesNotFit {
        return Vec::new();
    }
    let mut advice = vec![
        "edges are those of this model, and others may follow from one that fits: do not read them as causes yet"
            .to_string(),
    ];
    let mut add = |applies: bool, text: &str| advice.extend(applies.then(|| text.to_string()));
    let linear = dag.settings().sem == Sem::Linear {};
    add(
        !is_logged && found(fit, &[Skewness, Spread, Tails, Outliers]),
        "the setting log takes logarithms of positive columns, or of those it names",
    );
    add(linear && found(fit, &[Bend, Spread]), "the setting sem, if it is mlp, lets equations be other than linear");
    add(!linear && found(fit, &[Bend]), "the settings hidden, with more units, or bias let equations bend more");
    add(found(fit, &[Scale]), "the setting noise, if it is unknown, learns the noise of each node");
    advice
}
