//! Pages that say whether the model fits the data.

use vti::predictive::{
    Calibration, CalibrationGroup, FitKind, Gain, LeaveOneOut, Misfit, MisfitKind, ModelFit, OutcomeFit, Pit,
    Residuals, ScaleFit, Tested,
};
use vti::stats::Estimate;

use super::{AWKWARD, check_page, sections, small};

fn fit(value: f64) -> ModelFit {
    let tested = Tested { value, p_value: 0.2 };
    let outcome = OutcomeFit {
        name: "lpsa".into(),
        draws: 1000,
        loo: LeaveOneOut { elpd: -111.0, se: value, ..LeaveOneOut::default() },
        gain: Gain { elpd: value, se: 1.0 },
        pit: Pit { histogram: vec![value; 10], distance: value, p_value: 0.5 },
        residuals: Some(Residuals {
            skewness: tested,
            kurtosis: tested,
            largest: tested,
            bend: Some(tested),
            spread: Some(tested),
            ..Residuals::default()
        }),
        scale: Some(ScaleFit { ratio: value, p_value: 1e-9 }),
        dispersion: None,
        calibration: Some(Calibration {
            groups: vec![CalibrationGroup { predicted: value, observed: 0.5, rows: 40 }],
            error: value,
            by_chance: Estimate { value, se: 0.01 },
            p_value: 0.3,
        }),
        misfits: vec![Misfit { kind: MisfitKind::Skewness, text: "skewed <b>".into(), p_value: 0.0 }],
    };
    ModelFit {
        kind: FitKind::DoesNotFit,
        text: "the model does not fit lpsa: skewed <b>".into(),
        advice: vec!["take logarithms".into()],
        rows: 97,
        of_rows: 200,
        outcomes: vec![outcome],
    }
}

#[test]
fn what_does_not_fit_is_seen_first_and_explained_below() {
    let mut shown = small();
    assert!(!sections(&shown).contains(&"fit".to_string()));
    for value in [0.1].into_iter().chain(AWKWARD) {
        shown.answer.fit = Some(fit(value));
        let words = check_page(&shown);
        for part in
            ["The model does not fit the data", "skewed <b>", "take logarithms", "97 of 200 rows", "Calibration"]
        {
            assert!(words.contains(part), "{part:?} in\n{words}");
        }
        assert!(words.find("The model does not fit").unwrap() < words.find("log evidence").unwrap());
        assert!(sections(&shown).contains(&"fit".to_string()));
    }
    let text = vti_report::text(&shown.answer);
    let (verdict, fit) =
        (text.find("Weights are well behaved.").unwrap(), text.find("\nfit: the model does not").unwrap());
    assert!(verdict < fit && text.ends_with("hint: take logarithms"), "{text}");
}
