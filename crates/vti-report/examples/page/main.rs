//! Pages and a figure from made-up numbers, to look at in a browser.
//!
//! ```text
//! cargo run -p vti-report --example page > page.html
//! cargo run -p vti-report --example page -- many > many.html
//! cargo run -p vti-report --example page -- figure > figure.svg
//! ```
//!
//! Kinds: `usual` (the default; eight covariates named after the prostate cancer data), `long` (long names), `single` (one
//! covariate, one model), `many` (200 covariates, 1,000 models, no exact answer), `figure` (a stand-alone figure of six
//! panels), `bars` (grouped bars, boxplots, densities), `samples` (two samples in one pairs plot); causal graphs: `graph-4`,
//! `graph-11-truth`, `graph-20-dense`, `graph-10-vague` and the like: the number of nodes, whether a truth is known, whether
//! there are many edges, whether little was learned.

mod graph;

use std::io::Write;

use vti_report::plot::{
    Area, Axis, Bar, BoxPlot, Boxes, Colour, Density, Figure, Key, Layer, Marker, Panel, Points, Sample, Sign, dodge,
    grouped, pairs,
};
use vti_report::{Coefficient, Comparison, Fact, Inclusion, Level, ModelRow, Pairs, Report, Trace, Verdict, page};

fn main() -> std::io::Result<()> {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "usual".into());
    let text = match kind.as_str() {
        "long" => {
            let long = |i| format!("an_unusually_long_name_of_a_covariate_{i:02}");
            page(&report(&(0..8).map(long).collect::<Vec<_>>(), 60, true))
        }
        "single" => page(&Report { warnings: Vec::new(), ..report(&["dose".to_owned()], 1, true) }),
        "many" => {
            let names: Vec<String> = (0..200).map(|i| format!("gene_{i:03}")).collect();
            page(&Report {
                verdict: Verdict {
                    level: Level::DoNotTrust,
                    text: "k̂ is 1.12: the weights have too heavy a tail.".into(),
                },
                ..report(&names, 1000, false)
            })
        }
        "figure" => families().svg(),
        "bars" => bars().svg(),
        "samples" => samples().svg(),
        _ if kind.starts_with("graph-") => graph_page(&kind["graph-".len()..]),
        _ => page(&report(&PROSTATE.map(str::to_owned), 60, true)),
    };
    std::io::stdout().write_all(text.as_bytes())
}

/// A page about causal graphs: "11" nodes, "11-truth" with a known graph, "11-dense" with many edges, "11-vague".
fn graph_page(kind: &str) -> String {
    const WEATHER: [&str; 4] = ["rain", "sprinkler", "wet_grass", "slippery"];
    const PROTEINS: [&str; 11] = ["Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt", "PKA", "PKC", "P38", "Jnk"];
    let nodes: usize = kind.split('-').next().and_then(|nodes| nodes.parse().ok()).unwrap_or(11).clamp(1, 64);
    let mean_degree = if kind.contains("dense") { 0.5 * nodes as f64 } else { 3.0 };
    let name = |i: usize| match nodes {
        4 => WEATHER[i].to_owned(),
        11 => PROTEINS[i].to_owned(),
        20 if i.is_multiple_of(4) => format!("a_rather_long_name_of_variable_{i}"),
        _ => format!("gene_{i:02}"),
    };
    let names: Vec<String> = (0..nodes).map(name).collect();
    let doubt = if kind.contains("vague") { 0.85 } else { 0.0 };
    page(&graph::report(&names, mean_degree, doubt, kind.contains("truth")))
}

const PROSTATE: [&str; 8] = ["lcavol", "lweight", "age", "lbph", "svi", "lcp", "gleason", "pgg45"];

/// Inclusion probabilities and coefficients, the sizes of which resemble the prostate cancer data.
const TRUTH: [(f64, f64, f64); 8] = [
    (0.9998, 0.532, 0.09),
    (0.974, 0.61, 0.17),
    (0.284, -0.0178, 0.01),
    (0.33, 0.094, 0.056),
    (0.963, 0.68, 0.21),
    (0.121, -0.07, 0.08),
    (0.137, 0.09, 0.11),
    (0.214, 0.0034, 0.0032),
];

/// Even and normal numbers from a fixed start.
struct Numbers(u64);

impl Numbers {
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.even().ln()).sqrt() * (std::f64::consts::TAU * self.even()).cos()
    }

    fn normals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.normal()).collect()
    }

    /// Weights that sum to 1, uneven as those of importance sampling.
    fn weights(&mut self, count: usize) -> Vec<f64> {
        let raw: Vec<f64> = (0..count).map(|_| (0.4 * self.normal()).exp()).collect();
        let total: f64 = raw.iter().sum();
        raw.into_iter().map(|weight| weight / total).collect()
    }

    /// `exact` as a run would report it.
    fn compare(&mut self, exact: f64, known: bool) -> Comparison {
        let se = (0.02 * (exact * (1.0 - exact)).max(0.0).sqrt()).min(0.12 * exact);
        let q = (exact * (0.15 * self.normal()).exp()).min(1.0);
        Comparison { q, corrected: (exact + se * self.normal()).clamp(0.0, 1.0), se, exact: known.then_some(exact) }
    }
}

/// Probability, coefficient and its standard deviation of a covariate.
fn truth(index: usize) -> (f64, f64, f64) {
    match TRUTH.get(index) {
        Some(truth) => *truth,
        None => (0.3 / (index as f64 - 6.0), 0.1 / (index % 7 + 1) as f64, 0.05),
    }
}

fn report(names: &[String], models: usize, known: bool) -> Report {
    let mut numbers = Numbers(7);
    let fact = |name: &str, value: &str, note: &str| Fact { name: name.into(), value: value.into(), note: note.into() };
    Report {
        title: "Which covariates matter for lpsa?".into(),
        subtitle: format!("Variable selection: 97 rows, Gaussian noise, g-prior; covariates: {}", names.len()),
        verdict: Verdict {
            level: Level::Corrected,
            text:
                "q misses some of the posterior (divergence 0.21 nats), but the weights of its draws are well behaved: \
                   k̂ is 0.41."
                    .into(),
        },
        facts: vec![
            fact("log evidence", "−102.418 ± 0.006", "corrected"),
            fact("bound (ELBO)", "−102.63 ± 0.01", "0.21 nats below"),
            fact("k̂", "0.41", "below 0.7: weights can be used"),
            fact("effective draws", "15 234 of 20 000", ""),
            fact("models met", &format!("{models}"), "of 256"),
            fact("time", "14.2 s", "12.9 s training, 1.3 s checking"),
        ],
        warnings: vec!["pgg45 and gleason are strongly correlated (0.75): their inclusion trades off".into()],
        trace: trace(&mut numbers),
        log_evidence: Some(-102.418),
        correction: String::new(),
        exact_name: known.then(|| "exact (enumeration)".into()),
        models: model_rows(&mut numbers, names, models, known),
        inclusion: names
            .iter()
            .enumerate()
            .map(|(i, name)| Inclusion { name: name.clone(), probability: numbers.compare(truth(i).0, known) })
            .collect(),
        coefficients: names.iter().enumerate().map(|(i, name)| coefficient(&mut numbers, i, name, known)).collect(),
        pairs: Some(joint(&mut numbers, names)),
        graph: None,
        settings:
            "seed = 1\n\n[problem]\nkind = \"selection\"\nresponse = \"lpsa\"\nprior = \"g:97\"\n\n[train]\nsteps = \
                   3000\nbatch = 256\nlearning_rate = 0.002\n"
                .into(),
        version: "0.1.0".into(),
    }
}

fn trace(numbers: &mut Numbers) -> Vec<Trace> {
    let point = |i: u64| {
        let time = i as f64 / 300.0;
        let noise = 0.06 * numbers.normal();
        let elbo = -102.63 - 900.0 * (-90.0 * time).exp() - 3.0 * (-8.0 * time).exp() + noise;
        let entropy = 2.35 + 3.2 * (-5.0 * time).exp() + 0.3 * noise;
        Trace { step: 10 * (i + 1), seconds: 12.9 * time, elbo, entropy }
    };
    (0..300).map(point).collect()
}

fn model_rows(numbers: &mut Numbers, names: &[String], count: usize, known: bool) -> Vec<ModelRow> {
    let raw: Vec<f64> = (0..count).map(|i| (-0.24 * (i as f64).powf(0.9)).exp()).collect();
    let total: f64 = raw.iter().sum();
    let row = |(i, raw): (usize, f64)| {
        let always = ["lcavol", "lweight", "svi"].len().min(names.len());
        let members: Vec<&str> = (0..names.len().min(8))
            .filter(|j| *j < always.saturating_sub(usize::from(i % 5 == 4)) || (i * 37 + 11) >> (j % 8) & 1 == 1)
            .map(|j| names[j].as_str())
            .collect();
        ModelRow {
            label: members.join(" + "),
            size: members.len(),
            probability: numbers.compare(raw / total, known),
            log_evidence: Some((-101.2 + raw.ln(), 0.004 + 0.03 * numbers.even())),
            khat: Some(if i == 6 { 0.83 } else { 0.1 + 0.4 * numbers.even() }),
        }
    };
    raw.into_iter().enumerate().map(row).collect()
}

fn coefficient(numbers: &mut Numbers, index: usize, name: &str, known: bool) -> Coefficient {
    let (inclusion, mean, sd) = truth(index);
    let mut draws: Vec<f64> = numbers.normals(600).into_iter().map(|z| mean + sd * z).collect();
    if index == 3 {
        // Two modes.
        draws.iter_mut().step_by(3).for_each(|draw| *draw = -0.6 * *draw - 0.12);
    }
    let weights = numbers.weights(draws.len());
    let average = inclusion * mean;
    let se = 0.01 * sd;
    Coefficient {
        name: name.into(),
        mean: Comparison { q: average * 0.98, corrected: average + se, se, exact: known.then_some(average) },
        sd: (inclusion * (sd * sd + mean * mean) - average * average).sqrt(),
        interval: if inclusion > 0.975 {
            (mean - 1.96 * sd, mean + 1.96 * sd)
        } else {
            (mean.min(0.0), (mean + sd).max(0.0))
        },
        inclusion,
        draws,
        weights,
    }
}

fn joint(numbers: &mut Numbers, names: &[String]) -> Pairs {
    let count = names.len().min(if names.len() > 8 { 11 } else { 4 });
    let shared = numbers.normals(800);
    let draws = |j: usize| -> Vec<f64> {
        let (_, mean, sd) = truth(j);
        let bent = |z: f64, own: f64| if j == 2 { 0.5 * z * z + 0.6 * own } else { 0.7 * z + 0.7 * own };
        let sign = if j.is_multiple_of(2) { 1.0 } else { -1.0 };
        shared.iter().map(|z| mean + sd * bent(sign * z, numbers.normal())).collect()
    };
    let draws = (0..count).map(draws).collect();
    Pairs { label: names[..count].join(" + "), names: names[..count].to_vec(), draws, weights: numbers.weights(800) }
}

/// Three families on ten data sets: probabilities above, cross-entropies below.
fn families() -> Figure {
    let mut numbers = Numbers(3);
    let mut above = Vec::new();
    let mut below = Vec::new();
    for (family, noise) in [("diagonal", 1.2), ("affine", 0.6), ("spline", 0.15)] {
        let (mut top, mut bottom) = (Vec::new(), Vec::new());
        for data in 0..10 {
            let exact: Vec<f64> =
                (0..128).map(|i| 0.4 * (-0.11 * f64::from(i) * (1.0 + 0.3 * numbers.even())).exp()).collect();
            let points: Vec<_> = exact.iter().map(|p| (*p, p * (noise * numbers.normal()).exp())).collect();
            let entropy: Vec<_> = exact
                .iter()
                .map(|p| (*p, 2.0 + noise - p.ln().abs() * -0.2 * noise + 0.3 * numbers.normal()))
                .collect();
            let dots = |points: &[(f64, f64)], marker, outlined, radius, name: String| {
                let colour = Colour::Series(data);
                Points {
                    points: points.to_vec(),
                    colour,
                    marker,
                    outlined,
                    radius,
                    opacity: 0.85,
                    name,
                    ..Points::default()
                }
            };
            let name = format!("data set {}", data + 1);
            top.push(dots(&points[1..], Marker::Circle, false, 1.8, name).into());
            bottom.push(dots(&entropy[1..], Marker::Circle, false, 1.8, String::new()).into());
            top.push(dots(&points[..1], Marker::Triangle, true, 4.5, String::new()).into());
            bottom.push(dots(&entropy[..1], Marker::Triangle, true, 4.5, String::new()).into());
        }
        top.push(Layer::Diagonal);
        let first = above.is_empty();
        let label = |text: &str| if first { text.to_owned() } else { String::new() };
        above.push(Panel {
            title: family.into(),
            x: Axis::log("reference probability").within(1e-7, 1.0),
            y: Axis::log(&label("q(m)")).within(1e-7, 1.0),
            layers: top,
            ..Panel::default()
        });
        below.push(Panel {
            x: Axis::log("reference probability").within(1e-7, 1.0),
            y: Axis::linear(&label("cross-entropy, nats")),
            layers: bottom,
            ..Panel::default()
        });
    }
    above.append(&mut below);
    let key = Key { name: "true model".into(), sign: Sign::Marker(Marker::Triangle), colour: Colour::Ink };
    Figure { title: "High misspecification".into(), panels: above, columns: 3, keys: vec![key], ..Figure::default() }
}

/// Bars, boxes and densities.
fn bars() -> Figure {
    let mut numbers = Numbers(5);
    let sizes: Vec<String> = [9, 12, 16, 20, 24].iter().map(|n| format!("2^{n}")).collect();
    let series = ["surrogate", "autoregressive", "categorical"];
    let mut bar = |at: f64, height: f64| {
        let value = height * (1.0 + 0.1 * numbers.even()) + 0.3 * at;
        Bar { at, value, error: Some((value - 0.3, value + 0.3)) }
    };
    let groups = series.map(|name| (name.to_owned(), (0..5).map(|i| bar(f64::from(i), 4.0)).collect()));
    let boxes = series.iter().enumerate().map(|(index, name)| {
        let (offset, width) = dodge(3, index);
        let boxes = (0..5).filter_map(|i| {
            let values: Vec<f64> = numbers.normals(40).iter().map(|z| z + f64::from(i)).collect();
            BoxPlot::of(f64::from(i) + offset, &values)
        });
        Boxes { boxes: boxes.collect(), width: width * 0.85, colour: Colour::Series(index), name: (*name).into() }
            .into()
    });
    let boxes: Vec<Layer> = boxes.collect();
    let density = |(index, shift): (usize, f64)| {
        let draws: Vec<f64> = numbers.normals(400).iter().map(|z| z + shift).collect();
        let points = Density::of(&draws, &[]).map(|density| density.curve(150, 1.0)).unwrap_or_default();
        Area { points, colour: Colour::Series(index), ..Area::default() }.into()
    };
    let long = sizes.iter().map(|size| format!("a long name for {size}")).collect();
    Figure {
        title: "Bars, boxes, densities".into(),
        columns: 3,
        panels: vec![
            Panel {
                title: "grouped bars".into(),
                x: Axis::names("models", sizes),
                y: Axis::linear("cross-entropy, nats"),
                layers: grouped(groups.to_vec()),
                ..Panel::default()
            },
            Panel { title: "boxplots".into(), x: Axis::names("", long), layers: boxes, ..Panel::default() },
            Panel {
                title: "densities".into(),
                x: Axis::linear("θ"),
                layers: [0.0, 1.5, 4.0].into_iter().enumerate().map(density).collect(),
                ..Panel::default()
            },
        ],
        ..Figure::default()
    }
}

/// Two samplers on the same parameters.
fn samples() -> Figure {
    let mut numbers = Numbers(11);
    let mut sample = |name: &str, shift: f64| {
        let first = numbers.normals(1500);
        let second = first.iter().map(|z| 0.6 * z * z + 0.5 * numbers.normal() + shift).collect();
        let third = first.iter().map(|z| -z + 0.7 * numbers.normal()).collect();
        Sample { name: name.into(), draws: vec![first, second, third], ..Sample::default() }
    };
    let samples = [sample("reversible jump", 0.0), sample("learned", 0.3)];
    pairs(&["θ₁".into(), "θ₂".into(), "θ₃".into()], &samples)
}
