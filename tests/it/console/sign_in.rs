//! Sign-in: a key for a cookie, limited to the scopes and the lifetime of the key.

use serde_json::json;

use super::{browser::Browser, scenery::Scenery};
use crate::{
    app::{TestApp, eventually},
    http::{
        client::{Reply, send},
        key_setup::ADMIN_KEY,
    },
};

pub const HTML: (&str, &str) = ("Accept", "text/html");
pub const KEYS: [(&str, &str); 2] = [("http.require_key", "true"), ("http.admin_key", ADMIN_KEY)];

/// Makes a key over the API.
pub async fn key(app: &TestApp, name: &str, scope: &str) -> (String, String) {
    let body = json!({ "name": name, "scopes": [scope] }).to_string();
    let bearer = format!("Bearer {ADMIN_KEY}");
    let made = send(app.address, "POST", "/v1/keys", &[("Authorization", &bearer)], &body)
        .await
        .expect(201);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

fn cookie(reply: &Reply) -> String {
    let line = reply.head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    line.unwrap_or_else(|| panic!("{reply:?}")).split(';').next().unwrap().to_owned()
}

pub fn form_token(body: &str) -> String {
    let field =
        body.split("name=\"form_token\" value=\"").nth(1).unwrap_or_else(|| panic!("{body}"));
    field.split('"').next().unwrap().to_owned()
}

pub async fn post(
    app: &TestApp,
    path: &str,
    cookie: &str,
    fields: &[(&str, &str)],
    more: &[(&str, &str)],
) -> Reply {
    let body =
        fields.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&");
    let origin = format!("http://{}", app.address);
    let mut headers =
        vec![("Cookie", cookie), ("Content-Type", "application/x-www-form-urlencoded"), HTML];
    if !more.iter().any(|(name, _)| *name == "Origin") {
        headers.push(("Origin", &origin));
    }
    headers.extend_from_slice(more);
    headers.retain(|(_, value)| !value.is_empty());
    send(app.address, "POST", path, &headers, &body).await
}

/// Signs in and returns the cookie.
pub async fn sign_in(app: &TestApp, key: &str) -> String {
    let form = send(app.address, "GET", "/sign-in", &[HTML], "").await;
    let (cookie_before, token) = (cookie(&form), form_token(&form.body));
    let reply = post(
        app,
        "/sign-in",
        &cookie_before,
        &[("form_token", &token), ("key", key), ("next", "/tasks")],
        &[],
    )
    .await;
    assert_eq!(reply.status, 303, "{reply:?}");
    assert!(reply.head.contains("location: /tasks"), "{reply:?}");
    let after = cookie(&reply);
    assert_ne!(after, cookie_before, "the cookie of before the sign-in must not be worth anything");
    after
}

pub async fn open(app: &TestApp, path: &str, cookie: &str) -> Reply {
    send(app.address, "GET", path, &[HTML, ("Cookie", cookie)], "").await
}

#[tokio::test]
async fn a_browser_exchanges_a_key_for_a_cookie() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::with(&KEYS).await;
    let (_, secret) = key(&scenery.app, "ann", "read").await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url(&format!("/tasks/{}", scenery.waiting))).await;
    assert!(browser.url().await.contains("/sign-in?next="), "{}", browser.url().await);
    browser.write("#key", "dals_000000000000_wrong").await;
    browser.click("main button").await;
    browser.wait_until("document.querySelector('.error')").await;
    assert!(browser.text(".error").await.contains("not accepted"));
    browser.complaints().await;
    // A typo does not change the page to go on to.
    browser.write("#key", &secret).await;
    browser.click("main button").await;
    browser.wait_until("document.querySelector('#explain')").await;
    assert!(browser.url().await.ends_with(&scenery.waiting.to_string()));
    // No script can read the cookie, and a key without the scope gets no buttons.
    assert_eq!(browser.run("return document.cookie.includes('dalsegno_console')").await, false);
    assert!(!browser.has("#confirm-cancel").await);
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:?}");
    browser.click(".foot form button").await;
    browser.wait_until("location.pathname === '/sign-in'").await;
    browser.open(&scenery.url("/")).await;
    assert!(browser.url().await.contains("/sign-in"));
}

#[tokio::test]
async fn the_cookie_is_strict_and_ends_with_its_key() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (id, secret) = key(app, "ann", "operate").await;
    let cookie = sign_in(app, &secret).await;
    assert_eq!(open(app, "/", &cookie).await.status, 200);
    let form = send(app.address, "GET", "/sign-in", &[HTML], "").await;
    let line = form.head.lines().find(|line| line.starts_with("set-cookie: ")).unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains("Secure"), "without TLS the browser would drop it: {line}");
    let bearer = format!("Bearer {ADMIN_KEY}");
    send(app.address, "POST", &format!("/v1/keys/{id}/revoke"), &[("Authorization", &bearer)], "")
        .await
        .expect(200);
    let reply = open(app, "/", &cookie).await;
    assert_eq!(reply.status, 303, "{reply:?}");
    assert!(reply.head.contains("location: /sign-in"), "{reply:?}");
}

#[tokio::test]
async fn behind_tls_the_cookie_is_secure() {
    let proxy = [KEYS[0], KEYS[1], ("http.trusted_proxies", "127.0.0.1")];
    let scenery = Scenery::with(&proxy).await;
    let app = &scenery.app;
    let https = [HTML, ("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "203.0.113.9")];
    let form = send(app.address, "GET", "/sign-in", &https, "").await;
    assert!(form.head.contains("; Secure"), "{form:?}");
}

#[tokio::test]
async fn forms_need_their_origin_and_their_token() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "operate").await;
    let (_, other) = key(app, "bob", "operate").await;
    let (cookie, foreign) = (sign_in(app, &secret).await, sign_in(app, &other).await);
    let token = form_token(&open(app, "/", &cookie).await.body);
    let id = scenery.waiting.to_string();
    let fields = [("form_token", token.as_str()), ("id", &id), ("reason", "late")];
    let refused = [
        (post(app, "/do/cancel_task", &cookie, &fields[1..], &[]).await, "stale_form"),
        (post(app, "/do/cancel_task", &foreign, &fields, &[]).await, "stale_form"),
        (
            post(app, "/do/cancel_task", &cookie, &fields, &[("Origin", "http://evil.example")])
                .await,
            "foreign_origin",
        ),
        (post(app, "/do/cancel_task", &cookie, &fields, &[("Origin", "")]).await, "no_origin"),
    ];
    for (reply, code) in refused {
        assert!(reply.status == 403 && reply.body.contains(code), "{code}: {reply:?}");
    }
    assert_eq!(scenery.world.task(scenery.waiting).await.state.as_str(), "queued");
    let done = post(app, "/do/cancel_task", &cookie, &fields, &[]).await;
    assert_eq!(done.status, 303, "{done:?}");
    assert_eq!(scenery.world.task(scenery.waiting).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn a_page_stays_when_its_sign_in_has_ended_and_its_forms_are_renewed() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "operate").await;
    let ended = sign_in(app, &secret).await;
    let token = form_token(&open(app, "/", &ended).await.body);
    let fields = [("form_token", token.as_str())];
    assert_eq!(post(app, "/sign-out", &ended, &fields, &[]).await.status, 303);
    let script = ("HX-Request", "true");
    let id = scenery.waiting.to_string();
    let fields = [("form_token", token.as_str()), ("id", &id), ("reason", "late")];
    let refused = post(app, "/do/cancel_task", &ended, &fields, &[script]).await;
    let polled = send(app.address, "GET", "/tasks", &[HTML, ("Cookie", &ended), script], "").await;
    for reply in [refused, polled] {
        assert_eq!(reply.status, 401, "{reply:?}");
        assert!(!reply.head.contains("hx-redirect"), "{reply:?}");
        assert!(reply.body.contains("href=\"/sign-in\" target=\"_blank\""), "{reply:?}");
    }
    // The next sign-in is in another tab. The form of this one gets its token, and is accepted then.
    let present = sign_in(app, &secret).await;
    let stale = post(app, "/do/cancel_task", &present, &fields, &[script]).await;
    assert!(stale.status == 403 && stale.body.contains("stale_form"), "{stale:?}");
    assert!(stale.body.contains("hx-swap-oob=\"outerHTML:[name=form_token]\""), "{stale:?}");
    let token = form_token(&stale.body);
    let fields = [("form_token", token.as_str()), ("id", &id), ("reason", "late")];
    let done = post(app, "/do/cancel_task", &present, &fields, &[script]).await;
    assert_eq!(done.status, 204, "{done:?}");
}

#[tokio::test]
async fn actions_without_the_scope_are_neither_offered_nor_run() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, reader) = key(app, "ann", "read").await;
    let (_, operator) = key(app, "bob", "operate").await;
    let (reader, operator) = (sign_in(app, &reader).await, sign_in(app, &operator).await);
    let of_others = ["webhooks", "keys", "audit", "doctor", "installation"];
    for (name, path) in scenery.pages() {
        let page = open(app, &path, &reader).await;
        if of_others.contains(&name) {
            assert_eq!(page.status, 403, "{path}: {page:?}");
            continue;
        }
        assert_eq!(page.status, 200, "{path}: {page:?}");
        assert!(!page.body.contains("action=\"/do/"), "{path} offers an action to a reader");
    }
    let offered = open(app, &format!("/tasks/{}", scenery.waiting), &operator).await;
    assert!(offered.body.contains("action=\"/do/cancel_task\""), "{offered:?}");
    let token = form_token(&open(app, "/", &reader).await.body);
    let id = scenery.waiting.to_string();
    let tried =
        post(app, "/do/cancel_task", &reader, &[("form_token", &token), ("id", &id)], &[]).await;
    assert!(tried.status == 403 && tried.body.contains("missing_scope"), "{tried:?}");
    // Sign-ins are for administrators.
    assert_eq!(open(app, "/sign-ins", &operator).await.status, 403);
}

#[tokio::test]
async fn sign_ins_are_listed_and_ended() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "read").await;
    let (reader, admin) = (sign_in(app, &secret).await, sign_in(app, ADMIN_KEY).await);
    let list = open(app, "/sign-ins", &admin).await;
    assert!(list.status == 200 && list.body.contains("this browser"), "{list:?}");
    assert!(list.body.contains("<bdi>ann</bdi>") && list.body.contains("admin key"), "{list:?}");
    let bearer = format!("Bearer {ADMIN_KEY}");
    let auth = [("Authorization", bearer.as_str())];
    let listed = send(app.address, "GET", "/v1/sign-ins", &auth, "").await.expect(200);
    let of_reader =
        listed["items"].as_array().unwrap().iter().find(|it| !it["key_id"].is_null()).unwrap();
    let path = format!("/v1/sign-ins/{}/end", of_reader["id"].as_str().unwrap());
    let ended = send(app.address, "POST", &path, &auth, "").await.expect(200);
    assert!(!ended["ended_at"].is_null(), "{ended}");
    assert_eq!(open(app, "/", &reader).await.status, 303);
    assert_eq!(open(app, "/", &admin).await.status, 200);
    let audit = send(app.address, "GET", "/v1/audit?action=sign_in", &auth, "").await.expect(200);
    let actions: Vec<_> =
        audit["items"].as_array().unwrap().iter().map(|it| it["action"].clone()).collect();
    assert_eq!(actions, ["sign_in.end", "sign_in.create", "sign_in.create"]);
}

#[tokio::test]
async fn a_link_from_another_site_opens_its_page_and_keeps_the_sign_in() {
    let Some(browser) = Browser::start().await else { return };
    let scenery = Scenery::with(&KEYS).await;
    let (_, secret) = key(&scenery.app, "ann", "read").await;
    browser.resize(1440, 900).await;
    browser.open(&scenery.url("/sign-in")).await;
    browser.write("#key", &secret).await;
    browser.click("main button").await;
    browser.wait_until("document.querySelector('#rail')").await;
    // A page without an origin is another site, also for the browser.
    let path = format!("/tasks/{}", scenery.waiting);
    for target in [path.clone(), format!("{path}%23explain")] {
        let link = format!("<a id=link href=\"{}\">read this</a>", scenery.url(&target));
        browser.open(&format!("data:text/html,{link}")).await;
        browser.click("#link").await;
        browser.wait_until("document.querySelector('#explain')").await;
        assert!(browser.url().await.ends_with(&path), "{}", browser.url().await);
    }
    browser.open(&scenery.url("/tasks")).await;
    assert!(browser.url().await.ends_with("/tasks"), "{}", browser.url().await);
}

#[tokio::test]
async fn a_request_from_another_site_replaces_no_cookie() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let sent = |site: &'static str, mode: &'static str| {
        [HTML, ("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", mode)]
    };
    let get = async |path: &str, headers: &[(&str, &str)]| {
        send(app.address, "GET", path, headers, "").await
    };
    let path = "/tasks?agent=a&text=%22b%22";
    for site in ["cross-site", "same-site"] {
        let page = get(path, &sent(site, "navigate")).await;
        assert!(page.status == 200 && !page.head.contains("set-cookie"), "{page:?}");
        let refresh = "http-equiv=\"refresh\" content=\"0;url=/tasks?agent=a&amp;text=%22b%22\"";
        assert!(page.body.contains(refresh), "{page:?}");
        // A browser that does not refresh has a link.
        assert!(page.body.contains("href=\"/tasks?agent=a&amp;text=%22b%22\""), "{page:?}");
        let image = get("/sign-in", &sent(site, "no-cors")).await;
        assert!(image.status == 200 && !image.head.contains("set-cookie"), "{image:?}");
    }
    // The request of that page itself, also by a browser that blocks cookies, goes on.
    for site in ["same-origin", "none"] {
        let page = get("/sign-in", &sent(site, "navigate")).await;
        assert!(page.head.contains("set-cookie") && page.body.contains("API key"), "{page:?}");
    }
    // Where browsers do not say where a request comes from, the cookie of forms leaves that of a sign-in alone.
    let (_, secret) = key(app, "ann", "read").await;
    let signed_in = sign_in(app, &secret).await;
    let forms = cookie(&get("/", &[HTML]).await);
    assert_ne!(forms.split('=').next(), signed_in.split('=').next());
    assert_eq!(open(app, "/", &format!("{forms}; {signed_in}")).await.status, 200);
    assert_eq!(open(app, "/", &forms).await.status, 303);
    // The link leads to a sign-in with the token of the cookie for forms. The browser sends the form with both cookies.
    let token = form_token(&open(app, "/sign-in", &forms).await.body);
    let both = format!("{forms}; {signed_in}");
    let fields = [("form_token", token.as_str()), ("key", &secret), ("next", "/tasks")];
    let again = post(app, "/sign-in", &both, &fields, &[]).await;
    assert!(again.status == 303 && again.head.contains("location: /tasks"), "{again:?}");
    assert_eq!(open(app, "/", &cookie(&again)).await.status, 200);
    // Other forms need the token of the sign-in, and that of a browser without cookies is empty.
    let out = post(app, "/sign-out", &both, &[("form_token", &token)], &[]).await;
    assert!(out.status == 403 && out.body.contains("stale_form"), "{out:?}");
    let bare = post(app, "/sign-in", "", &[("form_token", ""), ("key", &secret)], &[]).await;
    assert!(bare.status == 403 && bare.body.contains("stale_form"), "{bare:?}");
}

fn unknown_cookie(n: usize) -> String {
    format!("dalsegno_console={n:064x}")
}

#[tokio::test]
async fn unknown_cookies_are_answered_429_and_those_of_sign_ins_never() {
    let scenery = Scenery::with(&KEYS).await;
    let app = &scenery.app;
    let (_, secret) = key(app, "ann", "read").await;
    let (good, ended) = (sign_in(app, &secret).await, sign_in(app, &secret).await);
    let token = form_token(&open(app, "/", &ended).await.body);
    assert_eq!(post(app, "/sign-out", &ended, &[("form_token", &token)], &[]).await.status, 303);
    let mut tries = 0;
    let refused = loop {
        let cookie = unknown_cookie(tries);
        let reply = send(app.address, "GET", "/tasks", &[("Cookie", &cookie)], "").await;
        if reply.status == 429 {
            break reply;
        }
        reply.problem(401, "not_signed_in");
        tries += 1;
        assert!(tries < 10_000, "no unknown cookie is answered 429");
    };
    refused.problem(429, "too_many_bad_keys");
    assert!(tries >= 30, "{tries}");
    // The page leads to the sign-in all the same, and removes the cookie; what scripts ask for leaves it to another installation.
    assert!(!refused.head.contains("set-cookie"), "{refused:?}");
    let unknown = unknown_cookie(0);
    let page = open(app, "/tasks", &unknown).await;
    assert!(page.status == 303 && page.head.contains("location: /sign-in?next="), "{page:?}");
    assert!(page.head.contains("dalsegno_console=; Path=/;"), "{page:?}");
    assert!(page.head.contains("; Max-Age=0") && !page.head.contains("retry-after"), "{page:?}");
    let part = [HTML, ("HX-Request", "true"), ("Cookie", unknown.as_str())];
    let part = send(app.address, "GET", "/tasks", &part, "").await;
    assert!([401, 429].contains(&part.status) && !part.head.contains("set-cookie"), "{part:?}");
    let form = open(app, "/sign-in", &unknown).await;
    assert!(form.status == 200 && form.body.contains("API key"), "{form:?}");
    assert_eq!(open(app, "/", &good).await.status, 200);
    // A browser whose sign-in has ended is led to the form, as one without a cookie.
    for cookie in [ended.as_str(), ""] {
        let reply = open(app, "/", cookie).await;
        assert!(reply.status == 303 && reply.head.contains("location: /sign-in"), "{reply:?}");
    }
    // A new sign-in is never refused, either, and a mistyped key is not called one of too many.
    sign_in(app, &secret).await;
    let bad = [("Authorization", "Bearer dals_000000000000_0")];
    send(app.address, "GET", "/v1/tasks", &bad, "").await.problem(401, "bad_key");
    let form = open(app, "/sign-in", "").await;
    let fields = [("form_token", &*form_token(&form.body)), ("key", "dals_000000000000_0")];
    let mistyped = post(app, "/sign-in", &cookie(&form), &fields, &[]).await;
    assert!(mistyped.status == 401 && mistyped.body.contains("not accepted"), "{mistyped:?}");
}

/// The lock stands for a slow database: each lookup that has a statement of its own would hold a connection.
#[tokio::test]
async fn lookups_of_cookies_share_their_statements() {
    let scenery = Scenery::with(&KEYS).await;
    let (app, pool) = (&scenery.app, &scenery.app.pool);
    let mut locked = pool.begin().await.unwrap();
    sqlx::query("lock table dalsegno.sign_ins in access exclusive mode")
        .execute(&mut *locked)
        .await
        .unwrap();
    let address = app.address;
    let flood: Vec<_> = (0..40)
        .map(|n| {
            tokio::spawn(async move {
                let cookie = unknown_cookie(n);
                send(address, "GET", "/tasks", &[("Cookie", &cookie)], "").await.status
            })
        })
        .collect();
    let waiting = "select count(*) from pg_locks where relation = 'dalsegno.sign_ins'::regclass and not granted
                     and database = (select oid from pg_database where datname = current_database())";
    let waiting = async || sqlx::query_scalar::<_, i64>(waiting).fetch_one(pool).await.unwrap();
    eventually("a lookup waits", async || (waiting().await > 0).then_some(())).await;
    // Requests that need a connection are answered meanwhile.
    let bearer = format!("Bearer {ADMIN_KEY}");
    for _ in 0..20 {
        let auth = [("Authorization", bearer.as_str())];
        send(address, "GET", "/v1/campaigns", &auth, "").await.expect(200);
    }
    assert_eq!(waiting().await, 1);
    locked.rollback().await.unwrap();
    for reply in flood {
        assert!([401, 429].contains(&reply.await.unwrap()));
    }
}

#[tokio::test]
async fn loopback_needs_no_sign_in() {
    let app = TestApp::start().await;
    let page = app.get("/").await;
    assert!(page.status == 200 && !page.body.contains("Sign out"), "{}", page.body);
}
