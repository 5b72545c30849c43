//! Tests of `program_runner`.

use tokio::io::duplex;

use super::*;

type Asking = mpsc::Sender<(ProgramRequest, oneshot::Sender<ProgramOutput>)>;

/// Returns a runner and a worker that runs in this process.
fn connected(
    allowed: impl Fn(&str, &[String]) -> bool + Send + Sync + 'static,
) -> (Asking, tokio::task::JoinHandle<io::Result<()>>) {
    let (client_end, worker_end) = duplex(64);
    let (out, response_reader) = duplex(64);
    let (sender, receiver) = mpsc::channel(1);
    let pending = PendingPrograms::default();
    tokio::spawn(receive_responses(response_reader, pending.clone()));
    tokio::spawn(send_requests(client_end, receiver, pending));
    (
        sender,
        tokio::spawn(async move { serve(worker_end, out, Path::new("/"), allowed).await }),
    )
}

async fn run(sender: &Asking, grant: &str, script: &str) -> ProgramOutput {
    let (answer, response) = oneshot::channel();
    let words = ["sh", "-c", script].map(str::to_owned).to_vec();
    sender
        .send((
            ProgramRequest {
                grant: grant.to_owned(),
                words,
            },
            answer,
        ))
        .await
        .map_err(|_| ProgramFailure::WorkerGone)?;
    response.await.unwrap_or(Err(ProgramFailure::WorkerGone))
}

#[tokio::test]
async fn worker_runs_allowed_programs_and_returns_their_outcome() {
    let (sender, worker) = connected(|grant, words| grant == "a.toml" && words.len() == 3);
    let output = run(&sender, "a.toml", "pwd; printf s3cret").await.unwrap();
    assert_eq!(output.as_slice(), b"/\ns3cret");
    let large = run(&sender, "a.toml", "head -c 65536 /dev/zero")
        .await
        .unwrap();
    assert_eq!(large.len(), MAX_OUTPUT_BYTES);
    assert_eq!(
        run(&sender, "b.toml", "echo no").await,
        Err(ProgramFailure::NotAllowed)
    );
    assert_eq!(
        run(&sender, "a.toml", "exit 3").await,
        Err(ProgramFailure::Status(3))
    );
    assert_eq!(
        run(&sender, "a.toml", "exit -1").await,
        Err(ProgramFailure::Status(2))
    );
    assert_eq!(
        run(&sender, "a.toml", "kill -9 $$").await,
        Err(ProgramFailure::Killed)
    );
    assert_eq!(
        run(&sender, "a.toml", "yes").await,
        Err(ProgramFailure::OutputTooLarge)
    );
    // Concurrent programs, which end in another order.
    let (slow, quick) = tokio::join!(
        run(
            &sender,
            "a.toml",
            "read x < /dev/null; sleep 0.1; echo slow"
        ),
        run(&sender, "a.toml", "echo quick")
    );
    assert_eq!(
        (slow.unwrap().as_slice(), quick.unwrap().as_slice()),
        (&b"slow\n"[..], &b"quick\n"[..])
    );
    drop(sender);
    worker.await.unwrap().unwrap();
}

#[tokio::test]
async fn waiting_callers_are_notified_when_the_worker_ends() {
    let (sender, worker) = connected(|_, _| true);
    let running_program = run(&sender, "a.toml", "echo $$; sleep 1000");
    let ending = async {
        tokio::task::yield_now().await;
        worker.abort();
    };
    let (output, ()) = tokio::join!(running_program, ending);
    assert_eq!(output, Err(ProgramFailure::WorkerGone));
    assert_eq!(
        run(&sender, "a.toml", "echo").await,
        Err(ProgramFailure::WorkerGone)
    );
}

#[tokio::test]
async fn invalid_request_ends_the_worker() {
    for sent in [
        [[7; 8].to_vec(), [0xff; 4].to_vec()].concat(),
        [&[7; 8][..], &[2, 0, 0, 0], b"no"].concat(),
    ] {
        let (_out, responses) = duplex(64);
        let error = serve(sent.as_slice(), responses, Path::new("/"), |_, _| true)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
