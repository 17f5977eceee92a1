//! Learning ψ and φ together (paper, sections 3.1 to 3.4).

mod checkpoint;
mod dropping;
mod error;
mod estimator;
mod lesson;
mod plan;
mod plateau;
mod preparation;
mod report;
mod settings;
mod taught;
mod trainer;
mod warm_up;

pub use error::TrainError;
pub use lesson::{Lesson, LessonSettings, learn};
pub use preparation::{load_preparation, parse_preparation, save_preparation};
pub use report::{Dropped, NotFinite, Observer, Silent, StepReport, Stop};
pub use settings::{
    CheckpointSettings, FlowGradient, InformationSettings, PlateauSettings, TemperSettings, TrainSettings,
};
pub use taught::BOUND_EVERY;
pub use trainer::{Fit, Trainer};
