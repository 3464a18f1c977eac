//! The long forms. `cargo test --features chaos -- chaos`.

use super::turns::{dishonest, honest};

const N_TURNS: usize = 400;

#[tokio::test]
async fn four_hundred_turns_lose_nothing_on_an_honest_summariser() {
    honest(N_TURNS).await;
}

#[tokio::test]
async fn four_hundred_turns_succeed_and_lose_nothing_on_a_dishonest_summariser() {
    dishonest(N_TURNS).await;
}
