//! `dalsegno installation`: version, settings, migrations and sizes.

use super::{Context, Exit, Failure, output::format_table, server::with_server, words::time};
use crate::{
    domain::text::bytes,
    operations::{InstallationView, ShowInstallation},
};

/// Tables that the text lists; `--json` has all.
const MAX_TABLES: usize = 15;

pub(super) async fn run(context: &Context) -> Result<Exit, Failure> {
    with_server(context, async |server| {
        let installation = server.call(ShowInstallation {}).await?;
        context.output.print_data(&installation, || format_installation(&installation));
        Ok(Exit::Ok)
    })
    .await
}

fn format_installation(installation: &InstallationView) -> String {
    let InstallationView { id, created_at, version, database, tables, migrations, settings } =
        installation;
    let newest = migrations.first().map(|newest| newest.version.to_string()).unwrap_or_default();
    let changed = settings.iter().filter(|setting| !setting.is_default).count();
    let row = |table: &crate::domain::installation::TableSize| {
        let growth = table.added - table.removed;
        [table.table.clone(), bytes(table.bytes), table.rows.to_string(), format!("{growth:+}")]
    };
    // Since the statistics of the server began.
    let head = ["TABLE", "SIZE", "ROWS", "ROW GROWTH"];
    format!(
        "installation {id}, created {} UTC\nversion {version}, Postgres {}, {}\nmigrations {}, the newest {newest}\nsettings {changed} of {} are not defaults: `dalsegno config print`\n\n{}",
        time(*created_at),
        database.server_version,
        bytes(database.bytes),
        migrations.len(),
        settings.len(),
        format_table(&head, tables.iter().take(MAX_TABLES).map(row)),
    )
}
