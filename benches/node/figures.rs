//! Series of times, figures and the tables they end in.

use std::fmt::Write as _;
use std::time::Duration;

/// Times of one kind of thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(Vec<Duration>);

impl Series {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time that so many of a thousand do not exceed.
    pub(crate) fn quantile(&self, permille: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * permille).div_ceil(1000);
        let time = sorted.get(rank.saturating_sub(1)).copied();
        time.expect("a series without a time was never measured")
    }

    pub(crate) fn p99(&self) -> Duration {
        self.quantile(990)
    }

    pub(crate) fn max(&self) -> Duration {
        self.quantile(1000)
    }

    fn text(&self) -> String {
        format!(
            "p50 {}, p99 {}, max {} ms; n = {}",
            ms(self.quantile(500)),
            ms(self.p99()),
            ms(self.max()),
            self.0.len()
        )
    }
}

/// One line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: String,
    target: Option<(String, bool)>,
}

impl Figure {
    pub(crate) fn of(what: &str, series: &Series) -> Self {
        Self::text(what, series.text())
    }

    pub(crate) fn time(what: &str, time: Duration) -> Self {
        Self::text(what, format!("{} ms", ms(time)))
    }

    pub(crate) fn text(what: &str, value: String) -> Self {
        Self {
            what: what.to_owned(),
            value,
            target: None,
        }
    }

    /// Says whether the figure is what it should be.
    pub(crate) fn should(mut self, target: &str, met: bool) -> Self {
        self.target = Some((target.to_owned(), met));
        self
    }
}

/// A Markdown section with one table.
pub(crate) fn section(title: &str, figures: &[Figure]) -> String {
    let mut text = format!("## {title}\n\n| what | measured | target |\n| --- | --- | --- |\n");
    for figure in figures {
        let target = match &figure.target {
            None => String::new(),
            Some((target, true)) => format!("{target}: met"),
            Some((target, false)) => format!("{target}: **missed**"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {target} |", figure.what, figure.value);
    }
    text.push('\n');
    text
}

pub(crate) fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 {
        format!("{ms:.2}")
    } else {
        format!("{ms:.0}")
    }
}
