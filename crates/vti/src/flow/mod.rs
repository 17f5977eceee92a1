//! CoSMIC flows: one conditional normalizing flow for models of every dimension (paper, section 2).
//!
//! A flow maps reference variables `z ~ N(0, I)` to the parameters `θ_m` of a model, given the model as context. Rows carry
//! only their active coordinates, left-aligned by `P_m`; inactive ones take the static point of every transform, that is,
//! they are not touched at all (Lemma 2.1), so density and loss never involve them (Proposition 2.2, Corollary 2.3).
//!
//! ```
//! use vti::device::{Cpu, Device};
//! use vti::flow::{Batch, ContextShape, Flow, FlowSettings, FlowShape, Passes};
//!
//! // Three coordinates at most, four models.
//! let shape = FlowShape { max_dim: 3, context: ContextShape::Symbols(4) };
//! let flow = Flow::new(&FlowSettings::affine(2, 1, 8), shape)?;
//! let device = Cpu::<f64>::new(1)?;
//! let mut parameters = device.buffer(flow.parameter_count())?;
//! device.write(&flow.initial_parameters(1), &mut parameters)?;
//!
//! let mut batch = Batch::new();
//! batch.push(&[0, 2], 3); // a model with coordinates 0 and 2, context 3
//! let mut work = flow.workspace(&device, 1, Passes::Evaluation)?;
//! work.set_batch(&device, &batch)?;
//! work.write_z(&device, &[0.5, -1.0, 0.0])?;
//! flow.forward(&device, &parameters, &mut work)?;
//! let (mut theta, mut log_det) = ([0.0; 3], [0.0; 1]);
//! work.read_theta(&device, &mut theta, &mut log_det)?;
//! assert!((theta[0] - 0.5).abs() < 1e-12); // a new flow is the identity
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod batch;
pub(crate) mod context;
mod error;
mod layer;
pub(crate) mod made;
pub(crate) mod parameters;
mod settings;
mod shard;
mod workspace;

pub use batch::Batch;
pub use error::FlowError;
pub use parameters::Tensor;
pub use settings::{AffineSettings, DiagonalSettings, FlowSettings, GlobalSettings, LayerSettings, SplineSettings};
pub use workspace::{Passes, Workspace};

use std::hash::{DefaultHasher, Hash, Hasher};

use self::context::{ContextNet, Encoded};
use self::layer::Layer;
use self::parameters::Layout;
use crate::device::Device;
use crate::simd::Real;

/// What the flow is about: the saturated dimension and the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowShape {
    /// `d_max`.
    pub max_dim: usize,
    /// How models are told apart.
    pub context: ContextShape,
}

/// How a model enters the conditioners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextShape {
    /// As one of so many symbols, looked up in tables. One symbol means no context at all.
    Symbols(usize),
    /// As a vector of so many features.
    Features(usize),
}

/// A composition of layers, and where their parameters φ stand.
#[derive(Clone, Debug)]
pub struct Flow {
    shape: FlowShape,
    encoder: Option<ContextNet>,
    encoded: Encoded,
    layers: Vec<Layer>,
    layout: Layout,
    /// Tells its workspaces from those of other flows.
    fingerprint: u64,
}

impl Flow {
    /// Checks the settings and lays the parameters out.
    pub fn new(settings: &FlowSettings, shape: FlowShape) -> Result<Self, FlowError> {
        let fingerprint = fingerprint(settings, shape);
        if shape.max_dim == 0 {
            // No model has a parameter: settings are checked all the same, but there is nothing to transform.
            Self::new(settings, FlowShape { max_dim: 1, ..shape })?;
            let encoded = Encoded::from(shape.context);
            let (layers, layout) = (vec![Layer::Reverse], Layout::default());
            return Ok(Self { shape, encoder: None, encoded, layers, layout, fingerprint });
        }
        let mut encoded = Encoded::from(shape.context);
        if matches!(encoded, Encoded::Symbols(0) | Encoded::Dense(0)) {
            return Err(FlowError::NoContext);
        }
        if settings.layers.is_empty() {
            return Err(FlowError::NoLayers);
        }
        let mut layout = Layout::default();
        let mut encoder = None;
        if let Some(&width) = settings.encoder.last() {
            if let Some(layer) = settings.encoder.iter().position(|&width| width == 0) {
                return Err(FlowError::Encoder { layer });
            }
            let allocate =
                |layout: &mut Layout| ContextNet::allocate(layout, encoded, &settings.encoder, shape.max_dim, true);
            encoder = Some(layout.within("encoder", allocate));
            encoded = Encoded::Dense(width);
        }
        let mut layers = Vec::with_capacity(settings.layers.len());
        let mut reversed = false;
        for (index, layer) in settings.layers.iter().enumerate() {
            layers.push(layout.within(format!("layers.{index}"), |layout| {
                Layer::allocate(layout, layer, index, shape.max_dim, encoded, reversed)
            })?);
            reversed ^= *layer == (LayerSettings::Reverse {});
        }
        // An odd number of reversals would hand θ out backwards; one more restores the order at no cost in parameters.
        if reversed {
            layers.push(Layer::Reverse);
        }
        Ok(Self { shape, encoder, encoded, layers, layout, fingerprint })
    }

    /// What the flow is about.
    pub fn shape(&self) -> FlowShape {
        self.shape
    }

    /// How many numbers φ has.
    pub fn parameter_count(&self) -> usize {
        self.layout.len()
    }

    /// Names, places and shapes of everything in φ.
    pub fn tensors(&self) -> &[Tensor] {
        self.layout.tensors()
    }

    /// Random initial φ. Last layers of conditioners are 0, so the flow starts as the identity.
    pub fn initial_parameters<T: Real>(&self, seed: u64) -> Vec<T> {
        self.layout.initial(seed, 0)
    }

    /// Memory for passes over batches of up to `rows` rows.
    pub fn workspace<D: Device>(&self, device: &D, rows: usize, passes: Passes) -> Result<Workspace<D>, FlowError> {
        Ok(Workspace::new(self, device, rows, passes)?)
    }

    /// Sampling direction: `θ = T_φ(z | m)` with `log |det ∇T|`, for the z and the batch in `work`.
    pub fn forward<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut Workspace<D>,
    ) -> Result<(), FlowError> {
        self.check(work, device.len(parameters))?;
        Ok(work.forward(self, device, parameters)?)
    }

    /// Density direction: `z = T_φ⁻¹(θ | m)` with `log |det ∇T|` (of the sampling direction), for the θ in `work`.
    ///
    /// `log q_φ(θ | m) = log ν(z) − log |det ∇T|` (paper, eq. 4 (cosmiciaf)).
    pub fn inverse<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut Workspace<D>,
    ) -> Result<(), FlowError> {
        self.check(work, device.len(parameters))?;
        Ok(work.inverse(self, device, parameters)?)
    }

    /// The score `∂ log q_φ(θ | m)/∂θ` at the θ of the last [`Flow::forward`], written to `score`, which is laid out as in
    /// [`Workspace::write_z`]; the rest of it is overwritten too. Leaves the forward pass as it is.
    ///
    /// `log q(θ) = log ν(z) − log |det ∇T(z)|` with `z = T⁻¹(θ)`. Each layer has a triangular Jacobian, so its inverse
    /// transpose is applied coordinate by coordinate, for the price of one backward pass (compare Vaitl, Winkler, Richter
    /// and Kessel 2024).
    pub fn score<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut Workspace<D>,
        score: &mut [D::Real],
    ) -> Result<(), FlowError> {
        self.check(work, device.len(parameters))?;
        work.score(self, device, parameters, score)
    }

    /// Gradients of a function of θ and log-determinants after [`Flow::forward`], whose derivatives
    /// [`Workspace::write_gradients`] set: with respect to φ (written to `gradient`) and z (read from `work`).
    /// Uses up what the forward pass left: each backward pass needs one of its own.
    pub fn backward<D: Device>(
        &self,
        device: &D,
        parameters: &D::Buffer,
        work: &mut Workspace<D>,
        gradient: &mut D::Buffer,
    ) -> Result<(), FlowError> {
        self.check(work, device.len(parameters))?;
        self.check(work, device.len(gradient))?;
        work.backward(self, device, parameters, gradient)
    }

    /// Whether workspace and parameters are this flow's.
    fn check<D: Device>(&self, work: &Workspace<D>, found: usize) -> Result<(), FlowError> {
        let expected = self.parameter_count();
        if work.fingerprint() != self.fingerprint {
            return Err(FlowError::OtherWorkspace);
        }
        if found != expected { Err(FlowError::Parameters { found, expected }) } else { Ok(()) }
    }
}

/// A number that flows of other settings or shapes do not have.
fn fingerprint(settings: &FlowSettings, shape: FlowShape) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{settings:?} {shape:?}").hash(&mut hasher);
    hasher.finish()
}
