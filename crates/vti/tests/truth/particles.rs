//! Particles that know nothing of q find the posterior, and say how far they may be off.

use std::sync::Arc;

use vti::check::{CheckSettings, Depth, OpinionSettings, Particles, VerdictKind, check, check_onwards};
use vti::device::Cpu;
use vti::evidence::{AnnealSettings, Evidence, EvidenceMethod, Evidences, ParticleMove};
use vti::family::FamilySettings;
use vti::prior::{Normal, Poisson};
use vti::problem::dag::{Dag, DagSettings, NodeData, Noise, Sem};
use vti::problem::selection::{
    ClosedForm, CoefficientPrior, EnumerationLimits, Likelihood, ModelPrior, QuadratureLimits, RegressionData,
    Selection, SelectionSettings, Standardise, Term, enumerate, evidence_by_quadrature,
};
use vti::problem::{self, Problem};
use vti::random::{Purpose, Stream};
use vti::search::ModelEvidences;
use vti::smc::{Sampled, Sampler, SmcSettings};
use vti::space::{Catalogue, Components, Model, OneOf};
use vti::stats::Estimate;
use vti::store::StoreError;
use vti::workers::Workers;

use crate::{affine, train};

fn quick(by: ParticleMove) -> SmcSettings {
    SmcSettings { particles: 256, by, steps: if by == ParticleMove::RandomWalk { 8 } else { 4 }, ..Default::default() }
}

fn sampled(problem: &dyn Problem, settings: &SmcSettings, threads: usize) -> Sampled {
    let reference = problem.reference().unwrap();
    let mut sampler = Sampler::new(problem, &reference, settings, 1).unwrap();
    assert!(sampler.run(settings.runs, &Workers::new(threads).unwrap(), &mut |_| true).unwrap());
    sampler.found().unwrap()
}

/// Forty rows with eight covariates, the first two of which are all but equal; only one of them and the third matter.
fn table() -> RegressionData {
    let mut stream = Stream::new(4, Purpose::Other(1), 0, 0);
    let mut columns: Vec<Vec<f64>> = (0..8).map(|_| (0..40).map(|_| stream.normal()).collect()).collect();
    columns[1] = columns[0].iter().map(|x| x + 0.05 * stream.normal()).collect();
    let response = (0..40).map(|row| columns[0][row] - 0.6 * columns[2][row] + stream.normal()).collect();
    let terms = columns.into_iter().enumerate().map(|(number, values)| {
        let name = format!("x{}", number + 1);
        Term { columns: vec![name.clone()], name, values, always: false, parents: Vec::new() }
    });
    RegressionData { response_name: "y".into(), response, terms: terms.collect(), ..RegressionData::default() }
}

fn selection(prior: CoefficientPrior, sigma: Option<f64>, model_prior: ModelPrior) -> Selection {
    let settings = SelectionSettings {
        likelihood: Likelihood::Gaussian { sigma },
        prior,
        model_prior,
        ..SelectionSettings::default()
    };
    Selection::new(&table(), Standardise::Full, &settings).unwrap()
}

/// Within four standard errors of the truth, and near it.
fn assert_near(what: &str, found: Estimate, truth: f64, most: f64) {
    let off = (found.value - truth).abs();
    assert!(off <= 4.0 * found.se + 1e-9 && off < most, "{what}: {found:?}, truth {truth}");
}

#[test]
fn selections_are_what_sums_over_all_models_say() {
    let normal = CoefficientPrior::Normal { scale: 1.0 };
    let cases = [
        (normal, Some(1.0), ModelPrior::Uniform {}, ParticleMove::Hamiltonian),
        (normal, None, ModelPrior::Bernoulli { p: 0.05 }, ParticleMove::Hamiltonian),
        (normal, Some(1.0), ModelPrior::Uniform {}, ParticleMove::RandomWalk),
        (CoefficientPrior::G { g: None }, None, ModelPrior::Uniform {}, ParticleMove::Hamiltonian),
    ];
    for (prior, sigma, model_prior, by) in cases {
        let selection = selection(prior, sigma, model_prior);
        let workers = Workers::new(2).unwrap();
        let exact = enumerate(&selection, &workers, &EnumerationLimits::default()).unwrap();
        let found = sampled(&selection, &quick(by), 2);
        let case = format!("{prior:?}, {sigma:?}, {model_prior:?}, {by:?}");
        assert_near(&case, found.log_evidence, exact.log_evidence, 0.3);
        for (part, (&found, &truth)) in found.parts.iter().zip(&exact.inclusion).enumerate() {
            assert_near(&format!("{case}: x{}", part + 1), found, truth, 0.05);
        }
        for model in found.models.iter().take(5) {
            assert_near(&case, model.probability, exact.probability(&model.model).unwrap(), 0.05);
        }
    }
}

/// The same seed gives the same bits whatever the number of threads, and another seed others.
#[test]
fn particles_do_not_depend_on_threads() {
    let selection = selection(CoefficientPrior::Normal { scale: 1.0 }, Some(1.0), ModelPrior::Uniform {});
    let settings = SmcSettings { particles: 64, sweeps: 1, kept: 2, ..SmcSettings::default() };
    let (one, three) = (sampled(&selection, &settings, 1), sampled(&selection, &settings, 3));
    assert_eq!(one, three);
    let reference = selection.reference().unwrap();
    let mut other = Sampler::new(&selection, &reference, &settings, 2).unwrap();
    other.run(settings.runs, &Workers::new(2).unwrap(), &mut |_| true).unwrap();
    assert_ne!(other.found().unwrap().log_evidence, one.log_evidence);
}

/// Three models: nothing; two modes far apart; and a normal density of which the right half is undefined.
fn modes() -> impl Problem + 'static {
    let normal =
        |x: f64, mean: f64, sd: f64| -0.5 * ((x - mean) / sd).powi(2) - sd.ln() - 0.5 * std::f64::consts::TAU.ln();
    problem::from_fn(OneOf::with_dims(&[0, 1, 2]).unwrap(), move |model, theta, gradient| match model[0] {
        0 => 0.0,
        1 => {
            let (a, b) = (normal(theta[0], -4.0, 0.3) + 0.7f64.ln(), normal(theta[0], 4.0, 0.3) + 0.3f64.ln());
            let total = a.max(b) + (-(a - b).abs()).exp().ln_1p();
            gradient[0] = ((a - total).exp() * (-4.0 - theta[0]) + (b - total).exp() * (4.0 - theta[0])) / 0.09;
            1.0 + total
        }
        _ => {
            gradient.iter_mut().zip(theta).for_each(|(g, t)| *g = -t);
            if theta[0] > 0.0 {
                f64::NAN
            } else {
                2f64.ln() + 0.5 + theta.iter().map(|&t| normal(t, 0.0, 1.0)).sum::<f64>()
            }
        }
    })
    .with_reference(vec![(0.0, 4.0); 2])
}

#[test]
fn modes_far_apart_and_undefined_halves_are_no_obstacle() {
    let problem = modes();
    let found = sampled(&problem, &quick(ParticleMove::Hamiltonian), 2);
    let evidences = [1.0, 1f64.exp(), 0.5f64.exp()];
    let total: f64 = evidences.iter().sum();
    assert_near("evidence", found.log_evidence, (total / 3.0).ln(), 0.1);
    for model in &found.models {
        let truth = evidences[usize::from(model.model[0])] / total;
        assert_near("model", model.probability, truth, 0.05);
    }
    let is_left = |row: usize| f64::from(u8::from(found.points.words[row] == 1 && found.points.theta[row][0] < 0.0));
    assert_near("left mode", found.mean(is_left), 0.7 * evidences[1] / total, 0.05);
}

/// Of numbers of components that are rare, draws of earlier rounds are kept, which count what all rounds counted.
#[test]
fn rare_numbers_of_components_have_draws() {
    let space = Components::new("part", 0..=6).each("place", Normal(0.0, 1.0)).ordered();
    let problem = problem::components(space, Poisson(1.0), |_| 0.0).unwrap();
    let settings = SmcSettings { runs: 6, particles: 128, kept: 32, ..SmcSettings::default() };
    let found = sampled(&problem, &settings, 2);
    assert_near("evidence", found.log_evidence, 0.0, 0.2);
    let (weights, words) = (found.weights(), &found.points.words);
    assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    for model in &found.models {
        let rows = || words.iter().zip(&weights).filter(|(word, _)| **word == model.model[0]);
        let (count, share) = (rows().count(), rows().map(|(_, weight)| weight).sum::<f64>());
        let truth = problem.log_prior(&model.model).exp();
        assert_near("probability", model.probability, truth, 0.02);
        if (0.004..0.03).contains(&truth) {
            // The last round alone would have few.
            let last = truth * 6.0 * 128.0;
            assert!(count as f64 > 4.0 * last, "{count} draws of {}, {last} of the last round", model.model);
            assert!((share / model.probability.value - 1.0).abs() < 1e-9, "{share}, {:?}", model.probability);
        }
    }
}

/// A q that has hardly been trained is seen for what it is; and what is said instead is right.
#[test]
fn what_q_has_not_learned_is_corrected() {
    let selection =
        Arc::new(selection(CoefficientPrior::Normal { scale: 1.0 }, Some(1.0), ModelPrior::Bernoulli { p: 0.02 }));
    let device = Cpu::<f32>::new(2).unwrap();
    let exact = enumerate(&selection, &Workers::new(2).unwrap(), &EnumerationLimits::default()).unwrap();
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    let posterior = train(&selection, &device, &family, 1, 128);
    let settings = |depth| CheckSettings {
        draws: 2000,
        opinion: OpinionSettings { depth, smc: quick(ParticleMove::Hamiltonian), ..Default::default() },
        ..CheckSettings::default()
    };
    let full = check(&posterior, &settings(Depth::Full)).unwrap();
    assert_eq!(full.verdict.kind, VerdictKind::Corrected, "{}", full.verdict.text);
    assert!(full.prefers_opinion);
    let opinion = full.opinion.unwrap();
    for (part, &truth) in opinion.parts.iter().zip(&exact.inclusion) {
        assert_near("corrected", *part, truth, 0.03);
    }
    // Without a look beyond q nothing is trusted.
    let none = check(&posterior, &settings(Depth::None)).unwrap();
    assert!(none.opinion.is_none());
    assert_eq!(none.verdict.kind, VerdictKind::DoNotTrust, "{}", none.verdict.text);
}

/// Draws of q and of particles together find the evidence of all models and of each, more precisely than particles alone do on their way
/// from the prior.
#[test]
fn evidences_by_both_kinds_of_draws_are_those_of_the_formula() {
    let selection =
        Arc::new(selection(CoefficientPrior::Normal { scale: 1.0 }, Some(1.0), ModelPrior::Bernoulli { p: 0.02 }));
    let exact = enumerate(&selection, &Workers::new(2).unwrap(), &EnumerationLimits::default()).unwrap();
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    let posterior = train(&selection, &Cpu::<f32>::new(2).unwrap(), &family, 400, 256);
    let opinion = OpinionSettings { smc: quick(ParticleMove::Hamiltonian), ..OpinionSettings::default() };
    let checked = check(&posterior, &CheckSettings { opinion, ..CheckSettings::default() }).unwrap();
    let opinion = checked.opinion.unwrap();
    let both = opinion.log_evidence_with_q.unwrap();
    assert!(both.se < opinion.log_evidence.se, "{both:?}, particles {:?}", opinion.log_evidence);
    assert_eq!(opinion.surest_log_evidence(), both);
    assert_near("log p(y)", both, exact.log_evidence, 0.1);
    for found in opinion.correction.models.iter().take(5) {
        let log_joint = exact.probability(&found.model).unwrap().ln() + exact.log_evidence;
        let Evidence { log_evidence, se, method, .. } = found.evidence.unwrap();
        let truth = log_joint - selection.log_prior(&found.model);
        assert!(method >= EvidenceMethod::Bridge, "{}: {method:?}", found.label);
        assert!(se < opinion.log_evidence.se, "{}: ± {se}, particles {:?}", found.label, opinion.log_evidence);
        assert_near(&found.label, Estimate { value: log_evidence, se: se.max(1e-4) }, truth, 0.05);
        // What weights say of the same model is no other number.
        let own = checked.correction.models.iter().find(|own| own.model == found.model).unwrap();
        assert_eq!(own.evidence, found.evidence);
    }
}

/// A check that ended too early goes on from its particles, and says in the end what one without an end says.
#[test]
fn a_check_goes_on_from_earlier_particles() {
    let selection =
        Arc::new(selection(CoefficientPrior::Normal { scale: 1.0 }, Some(1.0), ModelPrior::Bernoulli { p: 0.02 }));
    let device = Cpu::<f32>::new(2).unwrap();
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    let posterior = train(&selection, &device, &family, 1, 128);
    let settings = |repeats| CheckSettings {
        draws: 2000,
        opinion: OpinionSettings { repeats, smc: quick(ParticleMove::Hamiltonian), error: 1e-9, ..Default::default() },
        ..CheckSettings::default()
    };
    let first = check(&posterior, &settings(0)).unwrap();
    assert_eq!(first.verdict.kind, VerdictKind::DoNotTrust, "{}", first.verdict.text);
    let path = std::env::temp_dir().join(format!("vti-{}-particles.safetensors", std::process::id()));
    let particles = first.particles().unwrap();
    particles.save(&path, &*selection).unwrap();
    let loaded = Particles::load(&path, &*selection).unwrap();
    assert_eq!(loaded, particles);
    // One more round, as if it had been done at once; and beyond what settings ask for there is always another one.
    let once = check(&posterior, &settings(1)).unwrap().particles();
    for repeats in [0, 1] {
        let again = check_onwards(&posterior, &settings(repeats), Some(&loaded), &mut |_, _| true).unwrap();
        assert_eq!(again.verdict.kind, VerdictKind::Corrected, "{}", again.verdict.text);
        assert_eq!(again.particles(), once);
    }
    // Particles of another problem are refused.
    let error = Particles::load(&path, &modes()).unwrap_err();
    assert!(matches!(error, StoreError::Content { .. }), "{error}");
    std::fs::remove_file(path).unwrap();
}

/// Evidences that models have whatever way they are found.
fn agree(what: &str, found: &Evidence, truth: f64, most: f64) {
    assert_near(&format!("{what} {:?}", found.method), found.estimate(), truth, most);
}

/// Annealed evidences of single models are those in closed form; with random steps too.
#[test]
fn annealed_evidences_of_models_are_those_in_closed_form() {
    let selection = selection(CoefficientPrior::Normal { scale: 1.0 }, None, ModelPrior::Uniform {});
    let workers = Workers::new(2).unwrap();
    let words = [[0; 8], [1, 0, 1, 0, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0, 0, 1], [1; 8]];
    let exact = ClosedForm::new(&selection).unwrap().log_evidences(&words.concat(), &workers);
    let models: Vec<Model> = words.map(|word| Model::from(word.to_vec())).into();
    for by in [ParticleMove::Hamiltonian, ParticleMove::RandomWalk] {
        let settings = AnnealSettings { runs: 8, by, ..AnnealSettings::default() };
        let mut evidences = Evidences::new(&selection, &settings, 1).unwrap();
        for (found, truth) in evidences.annealed(&models, &workers).unwrap().iter().zip(&exact) {
            agree(&format!("{by:?}"), found.as_ref().unwrap(), *truth, 0.5);
        }
        // The cheapest way is the formula, for whoever asks.
        let cheapest: Vec<f64> = ModelEvidences::log_evidences(&mut evidences, &words.concat(), &workers)
            .unwrap()
            .iter()
            .map(|found| found.value)
            .collect();
        assert_eq!(cheapest, exact);
    }
}

/// A formula, a lattice, particles and weights of q: of one conjugate problem all of them give every model the same evidence.
#[test]
fn all_ways_to_an_evidence_agree() {
    // Two covariates that do not matter, so that q draws every model often.
    let table = RegressionData { terms: table().terms.into_iter().skip(3).take(2).collect(), ..table() };
    let settings = SelectionSettings {
        likelihood: Likelihood::Gaussian { sigma: Some(1.0) },
        prior: CoefficientPrior::Normal { scale: 1.0 },
        model_prior: ModelPrior::Uniform {},
        ..SelectionSettings::default()
    };
    let selection = Arc::new(Selection::new(&table, Standardise::Full, &settings).unwrap());
    let workers = Workers::new(2).unwrap();
    let models: Vec<Model> = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|word| Model::from(word.to_vec())).into();
    let anneal = AnnealSettings { runs: 8, ..AnnealSettings::default() };
    let evidences = Evidences::new(&*selection, &anneal, 1).unwrap();
    let exact: Vec<Evidence> =
        evidences.of_models(&models, &workers).unwrap().into_iter().map(|found| found.unwrap()).collect();
    let particles = evidences.annealed(&models, &workers).unwrap();
    let device = Cpu::<f32>::new(2).unwrap();
    let family = FamilySettings { flow: affine(), ..FamilySettings::default() };
    let checked = check(&train(&selection, &device, &family, 200, 128), &CheckSettings::default()).unwrap();
    for (place, model) in models.iter().enumerate() {
        let truth = exact[place];
        assert_eq!((truth.method, truth.se, truth.calls), (EvidenceMethod::ClosedForm, 0.0, 0));
        let lattice = evidence_by_quadrature(&selection, model, &QuadratureLimits::default()).unwrap();
        assert!(lattice.method == EvidenceMethod::Quadrature && lattice.calls > 0, "{lattice:?}");
        assert!((lattice.log_evidence - truth.log_evidence).abs() < 1e-6, "{lattice:?} for {truth:?}");
        let annealed = particles[place].unwrap();
        assert!(annealed.method == EvidenceMethod::Annealed && annealed.calls >= 8 * anneal.particles, "{annealed:?}");
        agree("particles", &annealed, truth.log_evidence, 0.3);
        let weighed = checked.correction.models.iter().find(|found| found.model == *model).unwrap().evidence.unwrap();
        let is_of_q = matches!(weighed.method, EvidenceMethod::Importance | EvidenceMethod::Bridge);
        assert!(is_of_q && weighed.calls >= 32, "{weighed:?}");
        let off = (weighed.log_evidence - truth.log_evidence).abs();
        assert!(off < 4.0 * weighed.se + 1e-3 && off < 0.1, "{weighed:?} for {truth:?}");
    }
}

/// The evidence of a graph is the product of those of its nodes: by formula, and annealed where there is none.
#[test]
fn evidences_of_graphs_are_products_over_nodes() {
    let mut stream = Stream::new(9, Purpose::Other(1), 0, 0);
    let first: Vec<f64> = (0..30).map(|_| stream.normal()).collect();
    let second: Vec<f64> = first.iter().map(|x| 0.7 * x + stream.normal()).collect();
    let data = NodeData::new(vec!["a".into(), "b".into()], vec![first, second]);
    let noise = Noise::Known { sigma: 1.0 };
    let workers = Workers::new(2).unwrap();
    let anneal = AnnealSettings { runs: 8, ..AnnealSettings::default() };
    for sem in [Sem::Linear {}, Sem::Mlp { hidden: 2, bias: false }] {
        let dag = Dag::new(data.clone(), DagSettings { sem, noise, ..DagSettings::default() }).unwrap();
        let evidences = Evidences::new(&dag, &anneal, 1).unwrap();
        let catalogue = Catalogue::new(dag.space(), 100).unwrap();
        let models: Vec<Model> = (0..catalogue.len()).map(|number| catalogue.model(number).unwrap()).collect();
        let blocks = dag.blocks().unwrap();
        for (model, found) in models.iter().zip(evidences.of_models(&models, &workers).unwrap()) {
            let found = found.unwrap();
            let mut keys = [0; 2];
            blocks.keys(model, &mut keys);
            let keys: Vec<(usize, u64)> = keys.into_iter().enumerate().collect();
            let nodes = evidences.of_blocks(blocks, &keys, &workers).unwrap();
            assert_eq!(found, Evidence::product(nodes.into_iter().flatten()));
            let is_linear = matches!(dag.settings().sem, Sem::Linear {});
            let method = if is_linear { EvidenceMethod::ClosedForm } else { EvidenceMethod::Annealed };
            assert!(found.method == method && (found.calls > 0) != is_linear, "{found:?}");
        }
    }
}
