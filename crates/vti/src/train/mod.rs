//! Learning ψ and φ together (paper, sections 3.1 to 3.4).

mod checkpoint;
mod error;
mod hold;
mod plateau;
mod replicates;
mod report;
mod settings;
mod trainer;

pub use error::TrainError;
pub use replicates::{Ending, Replicate, Replicates, replicates};
pub use report::{Dropped, NotFinite, Observer, Silent, StepReport, Stop};
pub use settings::{
    CheckpointSettings, FlowGradient, InformationSettings, PlateauSettings, TemperSettings, TrainSettings,
};
pub use trainer::{Fit, Trainer};
