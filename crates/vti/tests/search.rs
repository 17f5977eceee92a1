//! A search over models finds what enumeration finds, modes that are far apart, and what a distribution lacks.

#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use vti::answer::{Findings, Method, Quantity, Run, Subject};
use vti::check::VerdictKind;
use vti::device::Cpu;
use vti::posterior::ConjugatePosterior;
use vti::problem::selection::{
    ClosedForm, CoefficientPrior, Enumeration, ExactError, Likelihood, ModelPrior, RegressionData, Selection,
    SelectionSettings, Standardise, Term, log_evidences,
};
use vti::problem::{DensityError, Problem};
use vti::random::{Purpose, Stream};
use vti::search::{
    Ended, Estimator, LearnedModels, LearnedSettings, ModelEvidences, SearchError, SearchSettings, Searched, Target,
    learn_models, search,
};
use vti::space::{Dags, Model, ModelSpace, Subsets};
use vti::stats::{Estimate, log_sum_exp};
use vti::workers::Workers;

/// A table with so many covariates, the first two correlated at 0.999; the first, third, fifth … are relevant.
fn table(rows: usize, covariates: usize, relevant: usize, mean: f64, seed: u64) -> RegressionData {
    let mut stream = Stream::new(seed, Purpose::Other(7), 0, 0);
    let mut columns: Vec<Vec<f64>> = (0..covariates).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect();
    columns[1] = columns[0].iter().map(|x| 0.999 * x + (1.0f64 - 0.999 * 0.999).sqrt() * stream.normal()).collect();
    // Every other covariate first, then those between.
    let wanted = |column: usize| column / 2 + if column & 1 == 0 { 0 } else { covariates.div_ceil(2) } < relevant;
    let response = (0..rows)
        .map(|row| {
            mean + (0..covariates).filter(|&c| wanted(c)).map(|c| 0.4 * columns[c][row]).sum::<f64>() + stream.normal()
        })
        .collect();
    let term = |(number, values): (usize, Vec<f64>)| {
        let name = format!("x{}", number + 1);
        Term {
            columns: vec![name.clone()],
            name,
            values,
            always: number == covariates - 1 && covariates == 5,
            parents: Vec::new(),
        }
    };
    RegressionData {
        response_name: "y".into(),
        response,
        terms: columns.into_iter().enumerate().map(term).collect(),
        ..RegressionData::default()
    }
}

fn settings(sigma: Option<f64>, prior: CoefficientPrior, model_prior: ModelPrior) -> SelectionSettings {
    SelectionSettings { likelihood: Likelihood::Gaussian { sigma }, prior, model_prior, ..SelectionSettings::default() }
}

fn word_of(number: usize, terms: usize) -> Vec<u16> {
    (0..terms).map(|term| (number >> (terms - 1 - term) & 1) as u16).collect()
}

/// Each model by itself has the evidence that enumeration gives it: all four cases, centred and not, with a large mean, with a
/// term that is always in, and with fewer rows than columns.
#[test]
fn one_model_has_the_evidence_that_enumeration_gives_it() {
    let uniform = ModelPrior::Uniform {};
    let normal = |scale| CoefficientPrior::Normal { scale };
    let g = |g| CoefficientPrior::G { g };
    let cases = [
        (settings(Some(1.3), normal(1.5), uniform), 40),
        (settings(None, normal(1.5), uniform), 40),
        (settings(None, normal(0.1), uniform), 8),
        (settings(None, normal(30.0), uniform), 300),
        (settings(Some(0.7), g(None), uniform), 40),
        (settings(None, g(Some(50.0)), uniform), 40),
    ];
    for (settings, rows) in cases {
        for (covariates, mean) in [(9, 0.0), (5, 100.0)] {
            for standardise in [Standardise::Raw, Standardise::Full] {
                let table = table(rows, covariates, 3, mean, 1);
                let Ok(selection) = Selection::new(&table, standardise, &settings) else { continue };
                let all = log_evidences(&selection, &Workers::SINGLE).unwrap();
                let terms = selection.space().things();
                let words: Vec<u16> = (0..all.len()).flat_map(|number| word_of(number, terms)).collect();
                let closed = ClosedForm::new(&selection).unwrap();
                let found = closed.log_evidences(&words, &Workers::new(2).unwrap());
                for (number, (found, expected)) in found.iter().zip(&all).enumerate() {
                    let off = (found - expected).abs() / (1.0 + 1e-3 * expected.abs());
                    assert!(off < 1e-9, "{settings:?}, {rows} rows, model {number}: {found} for {expected}");
                }
            }
        }
    }
}

#[test]
fn other_likelihoods_have_no_closed_form() {
    let settings = SelectionSettings { likelihood: Likelihood::StudentT { df: 4.0 }, ..SelectionSettings::default() };
    let selection = Selection::new(&table(20, 3, 1, 0.0, 1), Standardise::Full, &settings).unwrap();
    assert!(matches!(ClosedForm::new(&selection), Err(ExactError::Likelihood)));
}

/// A selection of more covariates than rows and more than can be enumerated is set up.
#[test]
fn many_more_covariates_than_rows_are_fine() {
    let settings = settings(None, CoefficientPrior::Normal { scale: 1.0 }, ModelPrior::Bernoulli { p: 0.01 });
    let selection = Selection::new(&table(30, 300, 3, 0.0, 1), Standardise::Full, &settings).unwrap();
    let closed = ClosedForm::new(&selection).unwrap();
    let all = vec![1; 300];
    assert!(closed.log_evidence(&all).is_finite() && closed.log_evidence(&all[..0]).is_finite());
}

/// Inclusions by enumeration, and by a search: within four errors and 0.01, by either estimate; without errors where all is known.
fn compare(selection: &Selection, found: &Searched) {
    let terms = selection.space().things();
    let evidences = log_evidences(selection, &Workers::SINGLE).unwrap();
    let weights: Vec<f64> = evidences
        .iter()
        .enumerate()
        .map(|(number, value)| value + selection.log_prior(&word_of(number, terms)))
        .collect();
    let total = log_sum_exp(&weights);
    for (term, feature) in found.features.iter().enumerate() {
        let with = weights.iter().enumerate().filter(|(number, _)| number >> (terms - 1 - term) & 1 == 1);
        let exact: f64 = with.map(|(_, weight)| (weight - total).exp()).sum();
        let off = (feature.probability.value - exact).abs();
        assert!(off <= 4.0 * feature.probability.se + 1e-9 && off < 0.01, "term {term}: {feature:?}, exact {exact}");
        let (trace, by_evidences) = (feature.by_visits, feature.by_evidences);
        assert!((trace.share - exact).abs() <= 4.0 * trace.se, "term {term}: {feature:?}, exact {exact}");
        assert!(
            (by_evidences.value - exact).abs() <= 4.0 * by_evidences.se + 1e-9,
            "term {term}: {feature:?}, {exact}"
        );
    }
    assert!((found.log_total.value - total).abs() < found.unmet + 1e-6, "{} {total}", found.log_total.value);
}

fn run(selection: &Selection, settings: &SearchSettings, workers: &Workers) -> Searched {
    let log_prior = |word: &[u16]| selection.log_prior(word);
    let target = Target { space: selection.space(), log_prior: &log_prior, starts: &[], workers };
    search(&target, &mut ClosedForm::new(selection).unwrap(), settings, &mut |_| true).unwrap()
}

#[test]
fn a_search_finds_what_enumeration_finds() {
    let cases = [
        (200, 12, 8, ModelPrior::Bernoulli { p: 0.1 }, CoefficientPrior::default()),
        (200, 12, 8, ModelPrior::Bernoulli { p: 0.01 }, CoefficientPrior::default()),
        (50, 16, 4, ModelPrior::Uniform {}, CoefficientPrior::default()),
        (12, 14, 3, ModelPrior::Uniform {}, CoefficientPrior::Normal { scale: 1.0 }),
    ];
    for (number, (rows, covariates, relevant, model_prior, prior)) in cases.into_iter().enumerate() {
        let settings = settings(None, prior, model_prior);
        let selection =
            Selection::new(&table(rows, covariates, relevant, 2.0, number as u64), Standardise::Full, &settings)
                .unwrap();
        let settings =
            SearchSettings { iterations: 400_000, warmup: 2_000, max_error: 0.0025, ..SearchSettings::default() };
        let found = run(&selection, &settings, &Workers::new(2).unwrap());
        assert!(found.converged && found.ended == Ended::Converged, "case {number}: {:?}", found.diagnosis);
        compare(&selection, &found);
    }
}

/// Findings of a search, and exact ones of the same selection.
fn both(selection: &Selection, settings: &SearchSettings) -> (Searched, Findings, Findings) {
    let (workers, draws) = (Workers::new(2).unwrap(), 4_000);
    let found = run(selection, settings, &workers);
    let posterior = ConjugatePosterior::of_models(selection, found.weighed(), found.log_evidence.value, 1);
    let subject = Subject::of_selection(selection);
    let searched =
        Findings::searched(&posterior, (&found, settings), None, &subject, draws, &workers, Run::default()).unwrap();
    let all = ConjugatePosterior::enumerate(selection, &workers, 1).unwrap();
    let exact = Findings::exact(&all, &subject, draws, &workers, Run::default()).unwrap();
    assert!(Findings::exact(&posterior, &subject, draws, &workers, Run::default()).is_err());
    (found, searched, exact)
}

/// Whether an estimate is within so many of its errors, and a little.
fn near(found: &Quantity, exact: f64, little: f64) -> bool {
    (found.corrected - exact).abs() <= 4.0 * found.se + little
}

/// The whole answer of a search is that of enumeration, within its errors: by evidences, where nearly all models are known, and
/// by visits, where most are forgotten again.
#[test]
fn an_answer_from_chains_is_that_of_enumeration() {
    let cases = [
        (40, CoefficientPrior::Normal { scale: 1.0 }, None, 1 << 18, Estimator::Evidences),
        (60, CoefficientPrior::default(), None, 1024, Estimator::Visits),
        (60, CoefficientPrior::Normal { scale: 0.5 }, Some(1.1), 1024, Estimator::Visits),
    ];
    for (number, (rows, prior, sigma, remembered, estimator)) in cases.into_iter().enumerate() {
        let table = table(rows, 14, 3, 2.0, 10 + number as u64);
        let selection =
            Selection::new(&table, Standardise::Full, &settings(sigma, prior, ModelPrior::Uniform {})).unwrap();
        let settings = SearchSettings { warmup: 2_000, remembered, ..SearchSettings::default() };
        let (found, searched, exact) = both(&selection, &settings);
        let (answer, exact) = (&searched.answer, &exact.answer);
        assert_eq!((found.estimator, answer.correction), (estimator, Method::Search), "case {number}");
        assert!(answer.verdict.kind == VerdictKind::Trust && answer.exact.is_none() && !answer.is_learned());
        for ((name, part), (_, known)) in answer.found.inclusion().iter().zip(exact.found.inclusion()) {
            assert!(
                part.q.is_nan() && part.se < 0.02 && near(part, known.corrected, 1e-9),
                "{name}: {part:?} {known:?}"
            );
        }
        for ((name, one), (_, known)) in answer.found.coefficients().iter().zip(exact.found.coefficients()) {
            assert!(near(&one.mean, known.mean.corrected, 1e-9), "case {number}, {name}: {one:?} {known:?}");
            assert!((one.sd / known.sd - 1.0).abs() < 0.1, "case {number}, {name}: {one:?} {known:?}");
        }
        let (value, se) = (answer.log_evidence.estimate, answer.log_evidence.se);
        assert!(
            (value - exact.log_evidence.estimate).abs() < 4.0 * se + 1e-9,
            "{value} ± {se}: {:?}",
            exact.log_evidence
        );
        assert_eq!(answer.models[0].word, exact.models[0].word, "case {number}");
        for model in &answer.models[..10] {
            let known = exact.models.iter().find(|known| known.word == model.word).unwrap();
            assert!(near(&model.probability, known.probability.corrected, 1e-9), "{model:?} {known:?}");
            let evidences = [model, known].map(|model| model.log_evidence.unwrap());
            assert!((evidences[0].value - evidences[1].value).abs() < 1e-8 && evidences[0].se == 0.0);
        }
    }
}

/// q(m) learned from what a search met.
fn learn(selection: &Arc<Selection>, found: &Searched, settings: &SearchSettings, threads: usize) -> LearnedModels {
    let (device, problem) = (Cpu::<f32>::new(threads).unwrap(), selection.clone() as Arc<dyn Problem>);
    let mut evidences = ClosedForm::new(selection).unwrap();
    learn_models(&device, &problem, found, &mut evidences, settings, &mut |_| true).unwrap().unwrap()
}

/// q(m) has learned what chains met: its inclusions are near the exact ones, those by its weights and the evidence are within their
/// errors, which are far smaller than those of chains that forget most models; threads change nothing.
#[test]
fn weights_of_what_learned_from_chains_find_what_enumeration_finds() {
    let settings_of = settings(None, CoefficientPrior::default(), ModelPrior::Uniform {});
    let selection = Arc::new(Selection::new(&table(60, 14, 3, 2.0, 11), Standardise::Full, &settings_of).unwrap());
    let settings = SearchSettings { warmup: 2_000, remembered: 1024, ..SearchSettings::default() };
    let found = run(&selection, &settings, &Workers::new(2).unwrap());
    assert_eq!(found.estimator, Estimator::Visits);
    let learned = learn(&selection, &found, &settings, 2);
    assert_eq!(learned, learn(&selection, &found, &settings, 1));
    let exact = Enumeration::in_closed_form(&selection, &Workers::SINGLE).unwrap();
    assert!(learned.is_reliable(), "{:?}", learned.tail);
    for (term, inclusion) in exact.inclusion.iter().enumerate() {
        assert!((learned.features[term] - inclusion).abs() < 0.03, "{term}: {} {inclusion}", learned.features[term]);
        let Estimate { value, se } = learned.weighed[term];
        assert!((value - inclusion).abs() < 4.0 * se + 1e-9 && se < 0.01, "{term}: {value} ± {se}, {inclusion}");
    }
    let Estimate { value, se } = found.log_evidence_with(Some(&learned));
    assert!((value - exact.log_evidence).abs() < 4.0 * se && se < 0.5 * found.log_evidence.se, "{value} ± {se}");
    assert!(
        learned.elbo.value < exact.log_evidence + 4.0 * learned.elbo.se
            && learned.elbo.value > exact.log_evidence - 1.0
    );
}

/// Where reliable weights of q(m) contradict chains, nothing is trusted; nobody learns who does not want to, or has no time.
#[test]
fn chains_that_weights_contradict_are_not_trusted() {
    let selection = Selection::new(&table(60, 14, 3, 0.0, 1), Standardise::Full, &SelectionSettings::default());
    let (selection, workers) = (Arc::new(selection.unwrap()), Workers::SINGLE);
    let settings = SearchSettings { warmup: 1_000, ..SearchSettings::default() };
    let mut found = run(&selection, &settings, &workers);
    let learned = learn(&selection, &found, &settings, 1);
    let subject = Subject::of_selection(&selection);
    let answer = |found: &Searched| {
        let posterior = ConjugatePosterior::of_models(&selection, found.weighed(), found.log_evidence.value, 1);
        let what = (found, &settings);
        Findings::searched(&posterior, what, Some(&learned), &subject, 2_000, &workers, Run::default()).unwrap().answer
    };
    let good = answer(&found);
    assert!(good.verdict.kind == VerdictKind::Trust && good.is_learned(), "{}", good.verdict.text);
    assert!(good.elbo.is_some() && good.found.inclusion().iter().all(|(_, part)| part.q.is_finite()));
    assert!(good.found.coefficients().iter().all(|(_, found)| found.mean.q.is_finite()));
    assert!(good.log_evidence.khat.is_some_and(|khat| khat < 0.7), "{:?}", good.log_evidence);
    found.features[5].probability.value = 1.0 - found.features[5].probability.value;
    let bad = answer(&found).verdict;
    assert!(bad.kind == VerdictKind::DoNotTrust && bad.text.contains("weights of q(m)"), "{}", bad.text);
    let problem = selection.clone() as Arc<dyn Problem>;
    let none = |settings: &SearchSettings, watch: &mut dyn FnMut(u64) -> bool| {
        let (device, mut evidences) = (Cpu::<f32>::single(), ClosedForm::new(&selection).unwrap());
        learn_models(&device, &problem, &found, &mut evidences, settings, watch).unwrap().is_none()
    };
    assert!(none(&settings, &mut |step| step < 5));
    let learned = LearnedSettings { draws: 0, ..LearnedSettings::default() };
    assert!(none(&SearchSettings { learned, ..settings.clone() }, &mut |_| true));
}

/// Chains that were given no time are not trusted, and the verdict says what to do.
#[test]
fn chains_that_do_not_agree_are_not_trusted() {
    let selection =
        Selection::new(&table(60, 14, 3, 0.0, 1), Standardise::Full, &SelectionSettings::default()).unwrap();
    let settings = SearchSettings { warmup: 10, iterations: 60, ..SearchSettings::default() };
    let (_, searched, _) = both(&selection, &settings);
    let verdict = searched.answer.verdict;
    assert_eq!(verdict.kind, VerdictKind::DoNotTrust);
    assert!(verdict.text.contains("raise search.iterations"), "{}", verdict.text);
}

#[test]
fn threads_change_nothing() {
    let selection =
        Selection::new(&table(60, 14, 4, 0.0, 3), Standardise::Full, &SelectionSettings::default()).unwrap();
    let settings = SearchSettings { iterations: 3_000, warmup: 500, remembered: 1024, ..SearchSettings::default() };
    let alone = run(&selection, &settings, &Workers::SINGLE);
    assert_eq!(alone, run(&selection, &settings, &Workers::new(3).unwrap()));
    let other = SearchSettings { seed: 2, ..settings };
    assert_ne!(alone.draws, run(&selection, &other, &Workers::SINGLE).draws);
}

/// Evidences by a function of the word, counted.
struct ByFunction<F> {
    log_evidence: F,
    width: usize,
    se: f64,
    calls: usize,
    asked: std::collections::HashSet<Vec<u16>>,
}

impl<F: FnMut(&[u16]) -> f64> ByFunction<F> {
    fn new(space: &dyn ModelSpace, log_evidence: F) -> Self {
        Self { log_evidence, width: space.arities().len(), se: 0.0, calls: 0, asked: Default::default() }
    }
}

impl<F: FnMut(&[u16]) -> f64> ModelEvidences for ByFunction<F> {
    fn log_evidences(&mut self, words: &[u16], _: &Workers) -> Result<Vec<Estimate>, DensityError> {
        self.calls += 1;
        let words = words.chunks_exact(self.width);
        Ok(words
            .map(|word| {
                assert!(self.asked.insert(word.to_vec()), "asked twice");
                Estimate { value: (self.log_evidence)(word), se: self.se }
            })
            .collect())
    }
}

fn target<'a>(space: &'a dyn ModelSpace, starts: &'a [Model]) -> Target<'a> {
    Target { space, log_prior: &|_| 0.0, starts, workers: &Workers::SINGLE }
}

/// Two groups of models, twenty flips apart, with a desert between: 0.3 and 0.7 of all mass.
fn two_modes(word: &[u16]) -> f64 {
    let size: u16 = word.iter().sum();
    let (low, high) = (f64::from(size), f64::from(20 - size));
    let near = |distance: f64, mass: f64| f64::ln(mass) - 4.0 * distance;
    let (a, b) = (near(low, 0.3), near(high, 0.7));
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}

#[test]
fn temperatures_find_modes_that_are_far_apart() {
    let space = Subsets::new(20).unwrap();
    let settings = SearchSettings {
        temperatures: 6,
        iterations: 200_000,
        warmup: 10_000,
        remembered: 1 << 21,
        ..SearchSettings::default()
    };
    let found =
        search(&target(&space, &[]), &mut ByFunction::new(&space, two_modes), &settings, &mut |_| true).unwrap();
    // By symmetry every inclusion is 0.7 inside the far mode and 0.3 in the near one, less what either side's leaves add.
    let leaf = (-4.0f64).exp() / (1.0 + (-4.0f64).exp());
    let exact = 0.7 * (1.0 - leaf) + 0.3 * leaf;
    assert!(found.converged, "{:?}", found.diagnosis);
    for feature in &found.features {
        let Estimate { value, se } = feature.probability;
        assert!((value - exact).abs() < 4.0 * se + 0.001 && se < 0.05, "{value} ± {se} for {exact}");
    }
    // What a distribution lacks that knows the near mode alone.
    let log_q = |word: &[u16]| if word.iter().sum::<u16>() < 10 { -10.0 } else { f64::NEG_INFINITY };
    let of_models: Vec<f64> = found.models.iter().map(|model| log_q(&model.word)).collect();
    let of_draws: Vec<Vec<f64>> = found.draws.iter().map(|chain| chain.chunks_exact(20).map(log_q).collect()).collect();
    let missing = found.missing(&of_models, &of_draws, 1e-6);
    assert!((missing.value - 0.7).abs() < 4.0 * missing.se && missing.se < 0.1, "{missing:?}");
    let nothing = found.missing(
        &vec![0.0; of_models.len()],
        &of_draws.iter().map(|c| vec![0.0; c.len()]).collect::<Vec<_>>(),
        0.5,
    );
    assert!(nothing.value == 0.0 && nothing.se < 0.05);
}

/// Equal evidences: every word is as probable, whatever its neighbours are; and words of one graph share an evidence.
#[test]
fn equal_evidences_give_all_words_alike() {
    let settings = SearchSettings { iterations: 40_000, warmup: 1_000, ..SearchSettings::default() };
    let spaces: [Box<dyn ModelSpace>; 3] = [
        Box::new(Subsets::new(4).unwrap()),
        Box::new(Subsets::new(6).unwrap().with_sizes(1..=3).unwrap()),
        Box::new(Dags::new(3, 1).unwrap()),
    ];
    for space in spaces {
        let mut evidences = ByFunction::new(&space, |_: &[u16]| 0.0);
        let found = search(&target(&space, &[]), &mut evidences, &settings, &mut |_| true).unwrap();
        assert_eq!(found.estimator, Estimator::Evidences);
        let words = space.log_count().exp().round();
        assert!((found.log_total.value - words.ln()).abs() < 1e-9);
        let visited: f64 = found.models.iter().map(|model| model.by_visits).sum();
        assert!((visited - 1.0).abs() < 0.01);
        for model in &found.models {
            let sure = found.diagnosis.effective;
            let se = (model.by_evidences * (1.0 - model.by_evidences) / sure).sqrt();
            assert!((model.by_visits - model.by_evidences).abs() < 4.5 * se, "{model:?} ± {se}");
        }
    }
}

/// Errors of evidences are carried on: with noise of a known size, estimates are off by as much as they say.
#[test]
fn noise_of_evidences_is_in_the_errors() {
    let space = Subsets::new(3).unwrap();
    let settings = SearchSettings { iterations: 8_000, warmup: 500, min_effective: 0.0, ..SearchSettings::default() };
    let clean = |word: &[u16]| 0.5 * f64::from(word[0]) - 0.3 * f64::from(word[1] * word[2]);
    let exact = |feature: usize| {
        let weight = |number: usize| clean(&word_of(number, 3)).exp();
        let all: f64 = (0..8).map(weight).sum();
        (0..8).filter(|number| number >> (2 - feature) & 1 == 1).map(weight).sum::<f64>() / all
    };
    let (mut squares, mut count) = (0.0, 0.0);
    for seed in 0..40 {
        let mut stream = Stream::new(seed, Purpose::Other(3), 0, 0);
        let mut evidences = ByFunction::new(&space, |word: &[u16]| clean(word) + 0.2 * stream.normal());
        evidences.se = 0.2;
        let found = search(&target(&space, &[]), &mut evidences, &settings, &mut |_| true).unwrap();
        for (feature, found) in found.features.iter().enumerate() {
            squares += ((found.probability.value - exact(feature)) / found.probability.se).powi(2);
            count += 1.0;
        }
    }
    // The mean of 120 squared standard scores, groups of three dependent.
    let mean = squares / count;
    assert!((0.6..1.6).contains(&mean), "{mean}");
}

#[test]
fn limits_and_the_caller_end_a_search() {
    let space = Subsets::new(12).unwrap();
    let settings = SearchSettings { warmup: 10, max_rhat: 1.0, batch: 50, ..SearchSettings::default() };
    let go = |settings: &SearchSettings, watch: &mut dyn FnMut(usize) -> bool| {
        let mut evidences = ByFunction::new(&space, |word: &[u16]| f64::from(word[0]));
        search(&target(&space, &[]), &mut evidences, settings, &mut |progress| watch(progress.iteration))
    };
    let stopped = go(&settings, &mut |iteration| iteration < 100).unwrap();
    assert_eq!((stopped.ended, stopped.iterations), (Ended::Stopped, 90));
    assert_eq!(go(&settings, &mut |_| false).unwrap_err(), SearchError::TooShort);
    let few = go(&SearchSettings { max_models: 300, ..settings.clone() }, &mut |_| true).unwrap();
    assert!(few.ended == Ended::Models && (300..=312).contains(&few.asked), "{}", few.asked);
    let wrong = [Model::from(&[2u16; 12][..])];
    let mut evidences = ByFunction::new(&space, |_: &[u16]| 0.0);
    let refused = search(&target(&space, &wrong), &mut evidences, &settings, &mut |_| true).unwrap_err();
    assert!(matches!(refused, SearchError::Start { start: 0, .. }));
    let mut nowhere = ByFunction::new(&space, |_: &[u16]| f64::NAN);
    let nothing =
        search(&target(&space, &[]), &mut nowhere, &SearchSettings { iterations: 50, ..settings }, &mut |_| true);
    assert_eq!(nothing.unwrap_err(), SearchError::NoModel);
}
