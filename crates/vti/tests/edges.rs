//! Settings, errors and the edges of what a flow accepts.

#![allow(missing_docs, clippy::unwrap_used)]

use vti::engine::{CpuEngine, Engine, ShortSlice};
use vti::flow::{
    AffineSettings, Batch, ContextShape, DiagonalSettings, Flow, FlowError, FlowSettings, FlowShape, GlobalSettings,
    LayerSettings, Passes, SplineSettings,
};

const SHAPE: FlowShape = FlowShape { max_dim: 4, context: ContextShape::Symbols(3) };

fn refusal(layer: LayerSettings) -> FlowError {
    Flow::new(&FlowSettings { layers: vec![layer], encoder: vec![] }, SHAPE).unwrap_err()
}

#[test]
fn settings_survive_a_round_trip_and_unknown_keys_are_refused() {
    let mut settings = FlowSettings::spline(2, 3, 16);
    settings.layers.push(LayerSettings::Diagonal(DiagonalSettings::default()));
    settings.encoder = vec![8, 4];
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(serde_json::from_str::<FlowSettings>(&text).unwrap(), settings);

    let sparse = r#"{"layers": [{"kind": "affine", "hidden": 7}, {"kind": "reverse"}, {"kind": "global"}]}"#;
    let expected = FlowSettings {
        layers: vec![
            LayerSettings::Affine(AffineSettings { hidden: 7, ..AffineSettings::default() }),
            LayerSettings::Reverse,
            LayerSettings::Global(GlobalSettings::default()),
        ],
        encoder: vec![],
    };
    assert_eq!(serde_json::from_str::<FlowSettings>(sparse).unwrap(), expected);
    for wrong in [
        r#"{"layer": []}"#,
        r#"{"layers": [{"kind": "affine", "width": 7}]}"#,
        r#"{"layers": [{"kind": "coupling"}]}"#,
        r#"{"layers": [{"hidden": 3}]}"#,
    ] {
        assert!(serde_json::from_str::<FlowSettings>(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn impossible_flows_are_refused_with_their_reason() {
    assert_eq!(Flow::new(&FlowSettings::default(), SHAPE).unwrap_err(), FlowError::NoLayers);
    let none = FlowShape { max_dim: 4, context: ContextShape::Features(0) };
    assert_eq!(Flow::new(&FlowSettings::affine(1, 1, 4), none).unwrap_err(), FlowError::NoContext);
    let mut hollow = FlowSettings::affine(1, 1, 4);
    hollow.encoder = vec![4, 0];
    assert_eq!(Flow::new(&hollow, SHAPE).unwrap_err(), FlowError::Encoder { layer: 1 });

    let affine = |hidden, min_scale| LayerSettings::Affine(AffineSettings { hidden, blocks: 1, min_scale });
    assert_eq!(refusal(affine(0, 1e-3)), FlowError::Zero { layer: 0, what: "hidden" });
    assert!(matches!(refusal(affine(4, 1.0)), FlowError::Minimum { layer: 0, what: "min_scale", .. }));
    assert!(matches!(refusal(affine(4, f64::NAN)), FlowError::Minimum { .. }));
    let spline =
        |bins, min_width| LayerSettings::Spline(SplineSettings { bins, min_width, ..SplineSettings::default() });
    assert_eq!(refusal(spline(33, 1e-3)), FlowError::Bins { layer: 0, bins: 33, max: 32 });
    assert_eq!(refusal(spline(0, 1e-3)), FlowError::Bins { layer: 0, bins: 0, max: 32 });
    assert!(matches!(refusal(spline(10, 0.1)), FlowError::Minimum { what: "min_width", .. }));
    let hidden = LayerSettings::Diagonal(DiagonalSettings { hidden: vec![0], ..DiagonalSettings::default() });
    assert_eq!(refusal(hidden), FlowError::Zero { layer: 0, what: "hidden" });
    assert_eq!(refusal(spline(10, 0.1)).to_string(), "layer 0: min_width must be positive and below 0.1");
}

#[test]
fn impossible_batches_are_refused_with_their_reason() {
    let flow = Flow::new(&FlowSettings::affine(2, 1, 6), SHAPE).unwrap();
    let engine = CpuEngine::<f64>::single();
    let mut work = flow.workspace(&engine, 2, Passes::Evaluation);
    let refusal = |work: &mut vti::flow::Workspace<_>, rows: &[(&[u32], u32)]| {
        let mut batch = Batch::new();
        rows.iter().for_each(|(active, context)| batch.push(active, *context));
        work.set_batch(&engine, &batch).unwrap_err()
    };
    let wrong_order = FlowError::Coordinates { row: 1, max_dim: 4 };
    assert_eq!(refusal(&mut work, &[(&[0], 0), (&[2, 1], 0)]), wrong_order);
    assert_eq!(refusal(&mut work, &[(&[0], 0), (&[1, 1], 0)]), wrong_order);
    assert_eq!(refusal(&mut work, &[(&[0], 0), (&[4], 0)]), wrong_order);
    assert_eq!(refusal(&mut work, &[(&[0], 3)]), FlowError::Context { row: 0, context: 3, count: 3 });
    let three: [(&[u32], u32); 3] = [(&[], 0), (&[], 0), (&[], 0)];
    assert_eq!(refusal(&mut work, &three), FlowError::TooManyRows { rows: 3, capacity: 2 });

    let mut batch = Batch::new();
    batch.push(&[0, 3], 1);
    batch.push(&[2], 2);
    work.set_batch(&engine, &batch).unwrap();
    let short = FlowError::Length(ShortSlice { what: "z", found: 7, expected: 8 });
    assert_eq!(work.write_z(&engine, &[0.0; 7]).unwrap_err(), short);
    assert_eq!(work.write_saturated_z(&engine, &[0.0; 7]).unwrap_err(), short);
    work.write_z(&engine, &[0.0; 8]).unwrap();
    let missing = FlowError::Length(ShortSlice { what: "log_det", found: 1, expected: 2 });
    assert_eq!(work.read_theta(&engine, &mut [0.0; 8], &mut [0.0; 1]).unwrap_err(), missing);

    let features = FlowShape { max_dim: 4, context: ContextShape::Features(3) };
    let flow = Flow::new(&FlowSettings::affine(1, 1, 4), features).unwrap();
    let mut work = flow.workspace(&engine, 2, Passes::Evaluation);
    let mut batch = Batch::new();
    let context = batch.push_features(&[1.0, 2.0]);
    batch.push(&[0], context);
    assert_eq!(work.set_batch(&engine, &batch).unwrap_err(), FlowError::Features { found: 2, expected: 3 });
}

/// Every pass over a batch, returning θ and the gradient of φ.
fn passes(flow: &Flow, batch: &Batch<f64>, capacity: usize) -> (Vec<f64>, Vec<f64>) {
    let engine = CpuEngine::<f64>::new(2).unwrap();
    let mut parameters = engine.buffer(flow.parameter_count());
    engine.write(&flow.initial_parameters(3), &mut parameters);
    let mut gradient = engine.buffer(flow.parameter_count());
    let mut work = flow.workspace(&engine, capacity, Passes::Training);
    work.set_batch(&engine, batch).unwrap();
    let z = vec![0.7; batch.rows() * flow.shape().max_dim];
    work.write_z(&engine, &z).unwrap();
    flow.forward(&engine, &parameters, &mut work);
    let (mut theta, mut log_det) = (z.clone(), vec![0.0; batch.rows()]);
    work.read_theta(&engine, &mut theta, &mut log_det).unwrap();
    work.write_gradients(&engine, &theta, &log_det).unwrap();
    flow.backward(&engine, &parameters, &mut work, &mut gradient);
    let mut found = vec![f64::NAN; flow.parameter_count()];
    engine.read(&gradient, &mut found);
    let mut evaluation = flow.workspace(&engine, capacity, Passes::Evaluation);
    evaluation.set_batch(&engine, batch).unwrap();
    evaluation.write_theta(&engine, &theta).unwrap();
    flow.inverse(&engine, &parameters, &mut evaluation);
    let mut back = z.clone();
    evaluation.read_z(&engine, &mut back, &mut log_det).unwrap();
    assert!(back.iter().zip(&z).all(|(a, b)| (a - b).abs() < 1e-9));
    (theta, found)
}

#[test]
fn nothing_to_do_is_done() {
    let everything = [FlowSettings::affine(2, 1, 6), FlowSettings::spline(2, 1, 6), FlowSettings::diagonal(vec![3])];
    for settings in everything {
        for context in [ContextShape::Symbols(1), ContextShape::Symbols(3), ContextShape::Features(2)] {
            for max_dim in [0, 3] {
                let flow = Flow::new(&settings, FlowShape { max_dim, context }).unwrap();
                let mut batch = Batch::new();
                // No rows at all; a larger workspace than needed.
                assert!(passes(&flow, &batch, 100).1.iter().all(|&g| g == 0.0));
                // Rows without coordinates, and a context nobody uses.
                if let ContextShape::Features(width) = context {
                    batch.push_features(&vec![1.0; width]);
                    batch.push_features(&vec![2.0; width]);
                }
                batch.push(&[], 0);
                batch.push(&[], 0);
                assert!(passes(&flow, &batch, 100).1.iter().all(|&g| g == 0.0));
            }
        }
    }
}

/// A workspace forgets the batch before: results are those of a fresh one, bit for bit.
#[test]
fn workspaces_can_be_used_again() {
    let shape = FlowShape { max_dim: 5, context: ContextShape::Features(2) };
    let mut settings = FlowSettings::spline(2, 1, 9);
    settings.encoder = vec![4];
    settings.layers.push(LayerSettings::Diagonal(DiagonalSettings { hidden: vec![3], ..DiagonalSettings::default() }));
    let flow = Flow::new(&settings, shape).unwrap();
    let engine = CpuEngine::<f64>::single();
    let mut parameters = engine.buffer(flow.parameter_count());
    let start: Vec<f64> = flow.initial_parameters(3);
    let start: Vec<f64> =
        start.iter().enumerate().map(|(i, p)| if *p == 0.0 { 0.0 } else { p + 0.01 * (i % 7) as f64 }).collect();
    engine.write(&start, &mut parameters);
    let batch = |rows: usize, shift: usize| {
        let mut batch = Batch::new();
        for context in 0..3 {
            batch.push_features(&[context as f64 + shift as f64, 0.5]);
        }
        for row in 0..rows {
            let active: Vec<u32> = (0..5).filter(|c| (row + shift) >> c & 1 == 1).collect();
            batch.push(&active, ((row + shift) % 3) as u32);
        }
        batch
    };
    let run = |work: &mut vti::flow::Workspace<_>, batch: &Batch<f64>| {
        let z: Vec<f64> = (0..batch.rows() * 5).map(|i| (i as f64).sin()).collect();
        work.set_batch(&engine, batch).unwrap();
        work.write_z(&engine, &z).unwrap();
        flow.forward(&engine, &parameters, work);
        let (mut theta, mut log_det) = (z.clone(), vec![0.0; batch.rows()]);
        work.read_theta(&engine, &mut theta, &mut log_det).unwrap();
        work.write_gradients(&engine, &theta, &log_det).unwrap();
        let mut gradient = engine.buffer(flow.parameter_count());
        flow.backward(&engine, &parameters, work, &mut gradient);
        let mut found = vec![0.0; flow.parameter_count()];
        engine.read(&gradient, &mut found);
        let mut features = vec![0.0; 6];
        work.read_feature_gradient(&engine, &mut features).unwrap();
        [theta, log_det, found, features].concat()
    };
    let mut used = flow.workspace(&engine, 300, Passes::Training);
    for (rows, shift) in [(300, 0), (7, 3), (150, 8), (1, 31), (300, 5)] {
        let batch = batch(rows, shift);
        let mut fresh = flow.workspace(&engine, 300, Passes::Training);
        assert_eq!(run(&mut used, &batch), run(&mut fresh, &batch), "{rows} rows");
    }
}
