//! What the paper's experiments about causal graphs share: the fit, the peers, the rows of their tables, and the journal of
//! what is finished.

mod fit;
mod journal;
mod peers;
mod rows;

pub(super) use self::fit::learn;
pub(super) use self::journal::{Case, Journal};
pub(super) use self::peers::{Asked, Job, PeerArgs};
pub(super) use self::rows::{
    Answer, Finished, Method, Scored, conventions_note, is_better, paper_conventions, run_by, table, trivial,
};
