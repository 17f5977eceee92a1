//! Settings, errors and the edges of what a flow accepts.

use vti::device::{Cpu, Device, ShortSlice};
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
            LayerSettings::Reverse {},
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
        r#"{"layers": [{"kind": "reverse", "hidden": 3}]}"#,
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
    let device = Cpu::<f64>::single();
    let mut work = flow.workspace(&device, 2, Passes::Evaluation).unwrap();
    let refusal = |work: &mut vti::flow::Workspace<_>, rows: &[(&[u32], u32)]| {
        let mut batch = Batch::new();
        rows.iter().for_each(|(active, context)| batch.push(active, *context));
        work.set_batch(&device, &batch).unwrap_err()
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
    work.set_batch(&device, &batch).unwrap();
    let short = FlowError::Length(ShortSlice { what: "z", found: 7, expected: 8 });
    assert_eq!(work.write_z(&device, &[0.0; 7]).unwrap_err(), short);
    assert_eq!(work.write_saturated_z(&device, &[0.0; 7]).unwrap_err(), short);
    work.write_z(&device, &[0.0; 8]).unwrap();
    let missing = FlowError::Length(ShortSlice { what: "log_det", found: 1, expected: 2 });
    assert_eq!(work.read_theta(&device, &mut [0.0; 8], &mut [0.0; 1]).unwrap_err(), missing);

    let features = FlowShape { max_dim: 4, context: ContextShape::Features(3) };
    let flow = Flow::new(&FlowSettings::affine(1, 1, 4), features).unwrap();
    let mut work = flow.workspace(&device, 2, Passes::Evaluation).unwrap();
    let mut batch = Batch::new();
    let context = batch.push_features(&[1.0, 2.0]);
    batch.push(&[0], context);
    assert_eq!(work.set_batch(&device, &batch).unwrap_err(), FlowError::Features { found: 2, expected: 3 });
}

/// Every pass over a batch, returning θ and the gradient of φ.
fn passes(flow: &Flow, batch: &Batch<f64>, capacity: usize) -> (Vec<f64>, Vec<f64>) {
    let device = Cpu::<f64>::new(2).unwrap();
    let mut parameters = device.buffer(flow.parameter_count()).unwrap();
    device.write(&flow.initial_parameters(3), &mut parameters).unwrap();
    let mut gradient = device.buffer(flow.parameter_count()).unwrap();
    let mut work = flow.workspace(&device, capacity, Passes::Training).unwrap();
    work.set_batch(&device, batch).unwrap();
    let z = vec![0.7; batch.rows() * flow.shape().max_dim];
    work.write_z(&device, &z).unwrap();
    flow.forward(&device, &parameters, &mut work).unwrap();
    let (mut theta, mut log_det) = (z.clone(), vec![0.0; batch.rows()]);
    work.read_theta(&device, &mut theta, &mut log_det).unwrap();
    work.write_gradients(&device, &theta, &log_det).unwrap();
    flow.backward(&device, &parameters, &mut work, &mut gradient).unwrap();
    let mut found = vec![f64::NAN; flow.parameter_count()];
    device.read(&gradient, &mut found).unwrap();
    let mut evaluation = flow.workspace(&device, capacity, Passes::Evaluation).unwrap();
    evaluation.set_batch(&device, batch).unwrap();
    evaluation.write_theta(&device, &theta).unwrap();
    flow.inverse(&device, &parameters, &mut evaluation).unwrap();
    let mut back = z.clone();
    evaluation.read_z(&device, &mut back, &mut log_det).unwrap();
    assert!(back.iter().zip(&z).all(|(a, b)| (a - b).abs() < 1e-9));
    (theta, found)
}

#[test]
fn nothing_to_do_is_done() {
    let mut encoded = FlowSettings::spline(2, 1, 6);
    encoded.encoder = vec![5];
    for settings in [FlowSettings::affine(2, 1, 6), encoded, FlowSettings::diagonal(vec![3])] {
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

#[test]
fn too_many_threads_are_refused() {
    let error = Cpu::<f32>::new(usize::MAX).unwrap_err();
    assert_eq!(error.to_string(), format!("could not start {} threads: at most 1024 are supported", usize::MAX));
    assert_eq!(Cpu::<f32>::new(0).unwrap().workers().threads(), 1);
    assert_eq!(Cpu::<f32>::new(3).unwrap().workers().threads(), 3);
}

#[test]
fn gradients_need_a_forward_pass_of_their_own() {
    let flow = Flow::new(&FlowSettings::affine(1, 1, 4), SHAPE).unwrap();
    let other = Flow::new(&FlowSettings::affine(1, 1, 5), SHAPE).unwrap();
    let device = Cpu::<f64>::single();
    let parameters = device.buffer(flow.parameter_count()).unwrap();
    let mut gradient = device.buffer(flow.parameter_count()).unwrap();
    let mut batch = Batch::new();
    batch.push(&[1], 0);
    let mut work = flow.workspace(&device, 1, Passes::Training).unwrap();
    work.set_batch(&device, &batch).unwrap();
    work.write_z(&device, &[0.5; 4]).unwrap();
    assert_eq!(flow.backward(&device, &parameters, &mut work, &mut gradient), Err(FlowError::NoForwardPass));
    flow.forward(&device, &parameters, &mut work).unwrap();
    flow.backward(&device, &parameters, &mut work, &mut gradient).unwrap();
    assert_eq!(flow.backward(&device, &parameters, &mut work, &mut gradient), Err(FlowError::NoForwardPass));

    let mut evaluation = flow.workspace(&device, 1, Passes::Evaluation).unwrap();
    evaluation.set_batch(&device, &batch).unwrap();
    flow.forward(&device, &parameters, &mut evaluation).unwrap();
    assert_eq!(flow.backward(&device, &parameters, &mut evaluation, &mut gradient), Err(FlowError::NoForwardPass));
    assert_eq!(evaluation.write_gradients(&device, &[0.0; 4], &[0.0]), Err(FlowError::NoForwardPass));
    assert_eq!(evaluation.read_z_gradient(&device, &mut [0.0; 4]), Err(FlowError::NoForwardPass));

    // New z make the pass before useless.
    flow.forward(&device, &parameters, &mut work).unwrap();
    work.write_z(&device, &[0.1; 4]).unwrap();
    assert_eq!(flow.backward(&device, &parameters, &mut work, &mut gradient), Err(FlowError::NoForwardPass));

    let (found, expected) = (flow.parameter_count(), other.parameter_count());
    let mixed = other.forward(&device, &parameters, &mut work);
    assert_eq!(mixed, Err(FlowError::OtherWorkspace));
    let mut work = other.workspace(&device, 1, Passes::Training).unwrap();
    let mixed = other.forward(&device, &parameters, &mut work);
    assert_eq!(mixed, Err(FlowError::Parameters { found, expected }));
}

#[test]
fn bad_features_are_refused_with_their_place() {
    let shape = FlowShape { max_dim: 2, context: ContextShape::Features(2) };
    let flow = Flow::new(&FlowSettings::affine(1, 1, 4), shape).unwrap();
    let device = Cpu::<f64>::single();
    let mut work = flow.workspace(&device, 4, Passes::Training).unwrap();
    let refusal = |work: &mut vti::flow::Workspace<_>, contexts: &[&[f64]]| {
        let mut batch = Batch::new();
        contexts.iter().for_each(|features| _ = batch.push_features(features));
        batch.push(&[0], 0);
        work.set_batch(&device, &batch).unwrap_err()
    };
    assert_eq!(refusal(&mut work, &[&[1.0, 2.0], &[f64::NAN, 0.0]]), FlowError::Feature { context: 1, feature: 0 });
    assert_eq!(refusal(&mut work, &[&[1.0, f64::INFINITY]]), FlowError::Feature { context: 0, feature: 1 });
    assert_eq!(refusal(&mut work, &[&[9.0], &[1.0, 2.0]]), FlowError::Features { found: 1, expected: 2 });
    assert_eq!(refusal(&mut work, &[&[1.0, 2.0], &[9.0]]), FlowError::Features { found: 1, expected: 2 });
    assert_eq!(refusal(&mut work, &[&[1.0, 2.0], &[], &[3.0, 4.0]]), FlowError::Features { found: 0, expected: 2 });
}
