//! Answers: one type for everything that was found, which survives its own file.

use std::sync::Arc;

use vti::answer::{Answer, AnswerError, Findings, Found, Method, Run, Sources, Subject};
use vti::check::{CheckSettings, RefineSettings, check, refine};
use vti::device::{Cpu, Device};
use vti::family::FamilySettings;
use vti::posterior::{ConjugatePosterior, Posterior};
use vti::predictive::{FitKind, LookSettings};
use vti::problem::dag::simulate::{SimulationSettings, simulate};
use vti::problem::dag::{Dag, DagSettings, Noise, Scaling, Sem};
use vti::problem::selection::{
    CoefficientPrior, Likelihood, RegressionData, Selection, SelectionSettings, Standardise, Term,
};
use vti::problem::{self, Problem};
use vti::random::{Purpose, Stream};
use vti::space::OneOf;
use vti::train::{Silent, TrainSettings, Trainer};
use vti::workers::Workers;

use crate::hald::hald;

fn learn(problem: Arc<dyn Problem>, device: &Cpu<f64>, settings: TrainSettings) -> (Posterior<Cpu<f64>>, Run) {
    let settings = TrainSettings { batch: 64, ..settings };
    let trainer = Trainer::new(problem, device.clone(), &FamilySettings::default(), &settings).unwrap();
    let fit = trainer.run(&mut Silent).unwrap();
    let run = Run::of(&fit);
    (fit.posterior, run)
}

fn quick() -> CheckSettings {
    CheckSettings { draws: 2000, ..CheckSettings::default() }
}

/// The answer is what its file says.
fn survives(answer: &Answer) {
    assert_eq!(Answer::from_json(&answer.to_json().unwrap()).unwrap(), *answer);
}

#[test]
fn a_selection_is_answered_in_the_units_of_its_data() {
    let selection = Selection::new(&hald(), Standardise::Full, &SelectionSettings::default());
    let selection = Arc::new(selection.unwrap());
    let device = Cpu::new(2).unwrap();
    let (posterior, run) = learn(selection.clone(), &device, TrainSettings { steps: 200, ..TrainSettings::default() });
    let subject = Subject::of_selection(&selection);
    let (check, exact) = (check(&posterior, &quick()).unwrap(), subject.exact(device.workers()).unwrap().unwrap());
    let sources = Sources { exact: Some(&exact), ..Sources::from(&check) };
    let found = Findings::new(&posterior, &subject, &sources, run.clone()).unwrap();
    let answer = &found.answer;
    survives(answer);
    assert_eq!((answer.run.seed, answer.run.precision.as_str(), answer.correction), (1, "f64", Method::Weights));
    assert_eq!((answer.data.rows, answer.data.terms), (Some(13), Some(4)));
    for (name, term) in answer.found.inclusion() {
        assert!((term.corrected - term.exact.unwrap()).abs() < 5.0 * term.se + 0.02, "{name}: {term:?}");
    }
    assert!(answer.exact.unwrap().total_variation.unwrap().corrected < 0.05);
    // A predictor of measured columns: heat rises by 1.5 or so for each per cent of the first compound.
    let slope = answer.found.coefficients().iter().find(|(name, _)| name == "x1").unwrap().1;
    assert!(slope.mean.corrected > 1.0 && slope.mean.corrected < 2.0, "{slope:?}");
    // Chains are another correction of the same.
    let settings = RefineSettings { chains: 32, iterations: 100, ..RefineSettings::default() };
    let chains = refine(&posterior, &settings).unwrap();
    let sources = Sources { chains: Some(&chains), ..sources };
    let refined = Findings::new(&posterior, &subject, &sources, run).unwrap();
    survives(&refined.answer);
    assert_eq!(refined.answer.correction, Method::Chains);
    assert_eq!(refined.samples.len(), chains.draws.len());
    for ((name, a), (_, b)) in answer.found.inclusion().iter().zip(refined.answer.found.inclusion()) {
        assert!((a.corrected - b.corrected).abs() < 5.0 * (a.se + b.se) + 0.01, "{name}: {a:?} {b:?}");
    }
}

#[test]
fn graphs_are_answered_edge_by_edge() {
    let table = SimulationSettings { nodes: 3, rows: 60, sem: Sem::Linear {}, ..SimulationSettings::default() };
    let simulated = simulate(&table).unwrap();
    let settings = DagSettings { sem: Sem::Linear {}, noise: Noise::Known { sigma: 1.0 }, ..DagSettings::default() };
    let dag = Arc::new(Dag::new(simulated.table, settings).unwrap());
    let device = Cpu::new(2).unwrap();
    let (posterior, run) = learn(dag.clone(), &device, TrainSettings { steps: 50, ..TrainSettings::blockwise() });
    let subject = Subject::of_dag(&dag, &[1.0; 3]).with_truth("truth.csv", &simulated.truth);
    let (check, exact) = (check(&posterior, &quick()).unwrap(), subject.exact(device.workers()).unwrap().unwrap());
    let sources = Sources { exact: Some(&exact), ..Sources::from(&check) };
    let found = Findings::new(&posterior, &subject, &sources, run).unwrap();
    survives(&found.answer);
    let Found::Dag(graphs) = &found.answer.found else { panic!("{:?}", found.answer.found) };
    for edge in graphs.edges.ranked() {
        let probability = edge.probability;
        let off = (probability.corrected - probability.exact.unwrap()).abs();
        assert!(off < 5.0 * probability.se + 0.01, "{edge:?}");
    }
    assert_eq!(graphs.truth.as_ref().unwrap().edges.len(), simulated.truth.edge_count());
    // Every model is known by the parameters it has.
    for model in &found.samples.models {
        let active: Vec<usize> = (0..model.active.len()).filter(|&place| model.active[place]).collect();
        let word = subject.model_of(&active).unwrap();
        assert!(found.models.iter().any(|other| other.word == word.to_string() && other.label == model.label));
    }
}

#[test]
fn models_without_parts_or_parameters_have_an_answer_too() {
    // log p(y | m) = m for three models without any parameter.
    let problem = problem::from_fn(OneOf::with_dims(&[0, 0, 0]).unwrap(), |model, _, _| f64::from(model[0]));
    let problem = Arc::new(problem);
    let device = Cpu::new(1).unwrap();
    let (posterior, run) = learn(problem.clone(), &device, TrainSettings { steps: 300, ..TrainSettings::default() });
    let check = check(&posterior, &quick()).unwrap();
    let found = Findings::new(&posterior, &Subject::of(&*problem), &Sources::from(&check), run.clone()).unwrap();
    survives(&found.answer);
    assert!(found.answer.found.inclusion().is_empty() && found.answer.found.coefficients().is_empty());
    let first = &found.answer.models[0];
    let truth = 2f64.exp() / (1.0 + 1f64.exp() + 2f64.exp());
    assert!((first.probability.corrected - truth).abs() < 5.0 * first.probability.se + 0.01, "{first:?}");
    // A subject of another problem is refused.
    let other = problem::from_fn(OneOf::with_dims(&[1]).unwrap(), |_, _, _| 0.0);
    let error = Findings::new(&posterior, &Subject::of(&other), &Sources::from(&check), run).unwrap_err();
    assert!(matches!(error, AnswerError::OtherProblem { found: 1, expected: 0 }), "{error}");
}

#[test]
fn files_of_other_versions_are_refused_by_name() {
    let json = Answer::default().to_json().unwrap();
    let other = json.replace("\"version\": \"\"", "\"version\": \"0.0.7\"");
    // In the same form it can be read.
    assert_eq!(Answer::from_json(&other).unwrap().version, "0.0.7");
    let error = Answer::from_json(&other.replace("\"verdict\"", "\"judgement\"")).unwrap_err();
    assert!(error.to_string().starts_with("written by version 0.0.7"), "{error}");
    assert!(matches!(Answer::from_json("[]").unwrap_err(), AnswerError::Json(_)));
}

/// A table of three covariates, of which two count, and a response with normal errors of standard deviation 1.
fn simulated_table(rows: usize, seed: u64) -> RegressionData {
    let mut stream = Stream::new(seed, Purpose::Other(0), 0, 0);
    let columns: Vec<Vec<f64>> = (0..3).map(|_| (0..rows).map(|_| stream.normal()).collect()).collect();
    let response = (0..rows).map(|row| 2.0 + columns[0][row] - 0.4 * columns[1][row] + stream.normal()).collect();
    let term = |(place, values): (usize, &Vec<f64>)| {
        let name = format!("x{place}");
        Term { columns: vec![name.clone()], name, values: values.clone(), always: false, parents: Vec::new() }
    };
    RegressionData {
        response_name: "y".into(),
        response,
        terms: columns.iter().enumerate().map(term).collect(),
        ..RegressionData::default()
    }
}

fn without(table: &RegressionData, row: usize) -> RegressionData {
    let keep = |values: &[f64]| values.iter().enumerate().filter(|(i, _)| *i != row).map(|(_, x)| *x).collect();
    let term = |term: &Term| Term { values: keep(&term.values), ..term.clone() };
    let terms = table.terms.iter().map(term).collect();
    RegressionData { response: keep(&table.response), terms, ..table.clone() }
}

#[test]
fn rows_left_out_of_an_average_over_models_are_those_of_refits() {
    // Known noise and a prior that does not look at the data, so that p(y_i | y_−i) is a ratio of two evidences, each a sum over
    // all models.
    let settings = SelectionSettings {
        likelihood: Likelihood::Gaussian { sigma: Some(1.0) },
        prior: CoefficientPrior::Normal { scale: 2.0 },
        ..SelectionSettings::default()
    };
    let table = simulated_table(40, 5);
    let workers = Workers::new(2).unwrap();
    let selection = |table: &RegressionData| Selection::new(table, Standardise::Raw, &settings).unwrap();
    let log_evidence = |table: &RegressionData| {
        let selection = selection(table);
        ConjugatePosterior::enumerate(&selection, &workers, 1).unwrap().enumeration().unwrap().log_evidence
    };
    let all = log_evidence(&table);
    let truth: f64 = (0..40).map(|row| all - log_evidence(&without(&table, row))).sum();
    let selection = selection(&table);
    let posterior = ConjugatePosterior::enumerate(&selection, &workers, 1).unwrap();
    let subject = Subject::of_selection(&selection);
    let mut found = Findings::exact(&posterior, &subject, 4000, &workers, Run::default()).unwrap();
    found.look_at_fit(&subject, &LookSettings::default(), &workers);
    assert_eq!(Answer::from_json(&found.answer.to_json().unwrap()).unwrap().fit, found.answer.fit);
    let fit = found.answer.fit.unwrap();
    let loo = &fit.outcomes[0].loo;
    // Over draws, the log likelihood of all rows varies by √(p/2) or so: 0.05 with 1,000 of them.
    assert!((loo.elpd - truth).abs() < 0.25, "{} {truth}", loo.elpd);
    assert!(loo.p_loo > 1.0 && loo.p_loo < 6.0 && loo.khat_above == 0, "{loo:?}");
    assert!(fit.kind == FitKind::NothingFound && fit.outcomes[0].gain.elpd > 3.0, "{}", fit.text);
}

#[test]
fn nodes_that_do_not_fit_are_named() {
    let table = SimulationSettings { nodes: 3, rows: 300, sem: Sem::Linear {}, ..SimulationSettings::default() };
    for skewed in [false, true] {
        let mut simulated = simulate(&table).unwrap();
        if skewed {
            let column = &mut simulated.table.columns[1];
            column.iter_mut().for_each(|x| *x = x.exp());
            simulated.table.scale(Scaling::Columns);
        }
        let settings = DagSettings { sem: Sem::Linear {}, ..DagSettings::default() };
        let name = simulated.table.names[1].clone();
        let dag = Arc::new(Dag::new(simulated.table, settings).unwrap());
        let device = Cpu::new(2).unwrap();
        let (posterior, run) = learn(dag.clone(), &device, TrainSettings { steps: 50, ..TrainSettings::blockwise() });
        let subject = Subject::of_dag(&dag, &[1.0; 3]);
        let check = check(&posterior, &quick()).unwrap();
        let mut found = Findings::new(&posterior, &subject, &Sources::from(&check), run).unwrap();
        found.look_at_fit(&subject, &LookSettings::default(), device.workers());
        survives(&found.answer);
        let fit = found.answer.fit.unwrap();
        let bad = fit.outcomes.iter().find(|outcome| outcome.name == name).unwrap();
        assert_eq!(!bad.misfits.is_empty(), skewed, "{}", fit.text);
        assert_eq!(fit.text.contains(&format!("{name} (skewed")), skewed, "{}", fit.text);
        assert_eq!(fit.advice.is_empty(), !skewed, "{:?}", fit.advice);
    }
}
