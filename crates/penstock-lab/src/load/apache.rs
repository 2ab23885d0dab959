// SPDX-License-Identifier: MIT OR Apache-2.0
//! Apache: the server is the sender, ab asks it from the receiver.

use super::{Measured, Running, Site};
use crate::LabError;
use crate::process::{Background, find};
use crate::results::Metrics;
use crate::scenario::ApacheLoad;
use crate::stats;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much longer than its time ab may take beside a flood.
const PATIENCE: Duration = Duration::from_secs(60);
const MODULES: [&str; 2] = ["/usr/lib/apache2/modules", "/usr/lib/httpd/modules"];

/// Server and clients.
pub struct Apache {
    _server: Background,
    /// Each with the file that it writes percentiles to.
    clients: Vec<(Background, PathBuf)>,
    load: ApacheLoad,
}

impl Apache {
    /// Starts the server on one page.
    pub fn prepare(site: &Site<'_>, load: ApacheLoad) -> Result<Self, LabError> {
        let file = configure(site, &folder_of(site), load).map_err(|source| LabError::io("Apache's files", source))?;
        let server = Background::start(site.sender(), "apache2", &["-X", "-f", &file])?;
        site.wait_for_server(site.sender(), &server)?;
        Ok(Self { _server: server, clients: Vec::new(), load })
    }
}

fn folder_of(site: &Site<'_>) -> PathBuf {
    site.folder.join(format!("apache{}", site.index))
}

/// Writes the page and a configuration, and returns the latter's name.
fn configure(site: &Site<'_>, folder: &Path, load: ApacheLoad) -> std::io::Result<String> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("page"), vec![b'.'; usize::try_from(load.size.0).unwrap_or(0)])?;
    let modules = MODULES.into_iter().find(|path| Path::new(path).is_dir()).unwrap_or(MODULES[0]);
    let (place, listen) = (folder.display(), format!("{}:{}", site.source(), site.port()));
    // The event module serves all connections from one process with threads; -X keeps it to one.
    let threads = 25.max(load.instances * load.connections);
    let text = format!(
        "ServerName lab\nServerRoot {place}\nPidFile {place}/pid\nErrorLog {place}/error\nListen {listen}\n\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         StartServers 1\nServerLimit 1\nThreadLimit {threads}\nThreadsPerChild {threads}\n\
         MaxRequestWorkers {threads}\nMinSpareThreads {threads}\nMaxSpareThreads {threads}\n\
         KeepAlive On\nMaxKeepAliveRequests 0\nEnableSendfile Off\n\
         DocumentRoot {place}\n<Directory {place}>\nRequire all granted\n</Directory>\n"
    );
    let file = folder.join("conf");
    std::fs::write(&file, text)?;
    Ok(file.display().to_string())
}

impl Running for Apache {
    fn go(&mut self, site: &Site<'_>) -> Result<(), LabError> {
        let (time, connections) = (site.time.as_secs_f64().ceil().to_string(), self.load.connections.to_string());
        let url = format!("http://{}:{}/page", site.source(), site.port());
        if find("ab").is_none() {
            return Err(LabError::Missing { tool: "ab", package: "apache2-utils" });
        }
        for instance in 0..self.load.instances {
            // Percentiles in microseconds go to a file only; what ab prints is in whole milliseconds.
            let file = folder_of(site).join(format!("percentiles{instance}"));
            let name = file.display().to_string();
            let fixed = ["-q", "-k", "-r", "-s", "60", "-n", "10000000", "-e", &name];
            let words = [&fixed[..], &["-t", &time, "-c", &connections, &url]].concat();
            self.clients.push((Background::start(site.receiver(), "ab", &words)?, file));
        }
        Ok(())
    }

    fn finish(self: Box<Self>, site: &Site<'_>) -> Result<Measured, LabError> {
        let read_one = |(client, file): (Background, PathBuf)| {
            let said = client.finish(site.time + PATIENCE, site.stop)?;
            read(&said, &std::fs::read_to_string(file).unwrap_or_default())
        };
        let each = self.clients.into_iter().map(read_one).collect::<Result<Vec<_>, _>>()?;
        let of = |name: &str| -> Vec<f64> { each.iter().filter_map(|metrics| metrics.get(name).copied()).collect() };
        let sum = |name: &str| (name.to_owned(), of(name).iter().sum());
        let mean = |name: &str| (name.to_owned(), stats::mean(&of(name)));
        let metrics = [sum("goodput"), sum("requests_per_s"), sum("failed"), mean("p50"), mean("p99")];
        Ok(Measured { bins: Vec::new(), metrics: metrics.into() })
    }
}

/// The numbers of one ab: what it printed, and its file of percentiles, `50,0.412` in ms.
fn read(text: &str, percentiles: &str) -> Result<Metrics, LabError> {
    let wrong = |what: &str| LabError::Output { tool: "ab", what: format!("no {what:?} in: {}", text.trim()) };
    let number = |label: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
        let value = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        value.ok_or_else(|| wrong(label))
    };
    let percentile = |percent: &str| {
        let line = percentiles.lines().find_map(|line| line.strip_prefix(percent)?.strip_prefix(','));
        line.and_then(|value| value.parse::<f64>().ok()).ok_or_else(|| wrong(percent))
    };
    let kilobytes_per_s = number("Transfer rate:")?;
    Ok([
        ("goodput".to_owned(), kilobytes_per_s * 1024.0 * 8.0 / 1e6),
        ("requests_per_s".to_owned(), number("Requests per second:")?),
        ("failed".to_owned(), number("Failed requests:")?),
        ("p50".to_owned(), percentile("50")?),
        ("p99".to_owned(), percentile("99")?),
    ]
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_and_percentiles() {
        let text = "Complete requests:      120\nFailed requests:        1\nRequests per second:    24.00 [#/sec] (mean)\n\
                    Transfer rate:          1000.00 [Kbytes/sec] received\n  50%     0\n  99%    1\n 100%    3 (longest)\n";
        let percentiles = "Percentage served,Time in ms\n0,0.101\n5,0.110\n50,0.412\n99,1.238\n";
        let metrics = read(text, percentiles).unwrap();
        assert_eq!((metrics["goodput"], metrics["p50"], metrics["p99"], metrics["failed"]), (8.192, 0.412, 1.238, 1.0));
        assert!(read("Total of 0 requests completed", percentiles).is_err());
        assert!(read(text, "").is_err());
    }
}
