// SPDX-License-Identifier: MIT OR Apache-2.0
//! The folder of scenarios: `<paper>/<figure>.yaml`.

use crate::LabError;
use crate::template::Template;
use std::path::{Path, PathBuf};

/// A folder of scenarios.
#[derive(Debug, Clone)]
pub struct Library {
    folder: PathBuf,
}

/// `switchrl/fig7` for `.../switchrl/fig7.yaml`.
#[must_use]
pub fn scenario_name(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match path.parent().and_then(Path::file_name) {
        Some(paper) => format!("{}/{stem}", paper.to_string_lossy()),
        None => stem,
    }
}

impl Library {
    /// Scenarios below a folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Names of all scenarios, in order.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, LabError> {
        let mut names = Vec::new();
        for paper in entries(&self.folder)?.into_iter().filter(|path| path.is_dir()) {
            let files = entries(&paper)?.into_iter();
            let is_scenario = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml");
            names.extend(files.filter(is_scenario).map(|path| scenario_name(&path)));
        }
        names.sort_by_key(|name| sort_key(name));
        Ok(names)
    }

    /// Reads a scenario.
    ///
    /// # Errors
    /// There is none of this name, or something is wrong with it.
    pub fn read(&self, name: &str) -> Result<Template, LabError> {
        let path = self.folder.join(format!("{name}.yaml"));
        if !path.is_file() {
            let known = self.names()?;
            let words: Vec<&str> = known.iter().map(String::as_str).collect();
            let help = penstock_policy::diagnostics::did_you_mean(name, "scenarios", &words);
            return Err(LabError::Unknown { name: name.to_owned(), help });
        }
        let failed = |source| LabError::io(format!("cannot read {}", path.display()), source);
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        Ok(Template::parse(&path.display().to_string(), text)?)
    }
}

/// Figure 10 comes behind figure 9.
fn sort_key(name: &str) -> (String, u32, String) {
    let start = name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len());
    let digits: String = name[start..].chars().take_while(char::is_ascii_digit).collect();
    let number = digits.parse().unwrap_or(0);
    (name[..start].to_owned(), number, name[start + digits.len()..].to_owned())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    let failed = |source| LabError::io(format!("cannot read the folder {}", folder.display()), source);
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(failed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_order() {
        let mut names = ["b/fig2", "a/fig10", "a/fig9", "a/table1", "a/fig7-cubic", "a/fig7"];
        names.sort_by_key(|name| sort_key(name));
        assert_eq!(names, ["a/fig7", "a/fig7-cubic", "a/fig9", "a/fig10", "a/table1", "b/fig2"]);
    }
}
