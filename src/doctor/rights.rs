//! Checks of the database role: it must not change the ledger and the audit log, but must be able to remove expired
//! rows.

use sqlx::PgPool;

use super::Finding;
use crate::{
    config::Config,
    domain::{
        audit::{self, Rights},
        erasures::Key,
        installation,
    },
};

const RIGHTS: &str = "rights";
const WHY_RIGHTS: &str =
    "a role that may delete from the ledger and the audit log can hide changes";
const GRANTS: &str = "run the grants of docs/how-to/upgrade.md, \"The role that migrates\"";
const KEY: &str = "erasure_key";
const WHY_KEY: &str = "the receipts of erasures are signed with this key";

pub(super) async fn examine(config: &Config, pool: &PgPool) -> Finding {
    let looked = async {
        let installation = installation::get(pool).await?;
        Ok::<_, sqlx::Error>((audit::rights(pool).await?, installation.audit_min_days))
    };
    match looked.await {
        Ok((rights, min_days)) => judge(rights, config.audit.keep_days, min_days),
        Err(error) => Finding::warn(RIGHTS, error.to_string(), WHY_RIGHTS, "dalsegno migrate up"),
    }
}

/// Checks the key that signs receipts of erasures, and shows its public half.
pub(super) fn key(config: &Config) -> Finding {
    let path = config.erasures.key_file(&config.service.data_dir);
    match Key::open(&path) {
        Ok(Some(key)) => {
            let what = format!("the public key is {}", key.public_text());
            Finding::ok(KEY, what, WHY_KEY)
        }
        Ok(None) => {
            let what = format!("the first erasure creates it in {}", path.display());
            Finding::skipped(KEY, what, WHY_KEY)
        }
        Err(error) => {
            let fix = "do what the message says; until then receipts are not signed";
            Finding::fail(KEY, error.to_string(), WHY_KEY, fix)
        }
    }
}

fn judge(rights: Rights, keep_days: u32, min_days: i32) -> Finding {
    if rights.is_owner {
        let what = "the role owns the tables; use a separate role that can only append to the ledger and the audit log";
        return Finding::ok(RIGHTS, what, WHY_RIGHTS);
    }
    if !rights.may_remove {
        let what = "the role may not call the functions that remove expired rows";
        return Finding::fail(RIGHTS, what, WHY_RIGHTS, GRANTS);
    }
    if rights.may_delete {
        let what = "the role may delete from the audit log";
        return Finding::warn(RIGHTS, what, WHY_RIGHTS, GRANTS);
    }
    if i64::from(keep_days) < i64::from(min_days) {
        let what = format!(
            "audit.keep_days is {keep_days}, but the database keeps lines of the audit log for {min_days} days"
        );
        let fix = installation::set_audit_min_days(keep_days);
        return Finding::warn(RIGHTS, what, WHY_RIGHTS, fix);
    }
    Finding::ok(
        RIGHTS,
        "the role can append to the ledger and the audit log, and cannot change them",
        WHY_RIGHTS,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_role_with_wrong_delete_rights_is_reported() {
        let service = Rights { is_owner: false, may_delete: false, may_remove: true };
        let status = |rights, keep_days| judge(rights, keep_days, 365).status;
        assert_eq!(status(service, 365), Status::Ok);
        assert_eq!(status(Rights { is_owner: true, ..service }, 1), Status::Ok);
        assert_eq!(status(Rights { may_delete: true, ..service }, 365), Status::Warn);
        assert_eq!(status(Rights { may_remove: false, ..service }, 365), Status::Fail);
        assert_eq!(status(service, 30), Status::Warn);
    }
}
