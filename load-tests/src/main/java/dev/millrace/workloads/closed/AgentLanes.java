package dev.millrace.workloads.closed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.workloads.topology.LoadException;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/**
 * Agents side by side, each of which plays one session after the other: a call, a pause of random length, a call whose prompt goes on
 * from the answer. Times each call from its sending to its last byte.
 */
final class AgentLanes {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int TURNS = 8;
    private static final int ADDED_TOKENS = 32;
    private static final Duration LIMIT = Duration.ofSeconds(60);

    private final HttpClient client = HttpClient.newHttpClient();
    private final int agents;
    private final long thinkMs;

    /** @param thinkMs mean of the pauses */
    AgentLanes(int agents, long thinkMs) {
        this.agents = agents;
        this.thinkMs = thinkMs;
    }

    /** Where an agent's calls go, and what is around a session. */
    interface Target {
        /** Begins a session; its calls' URL. */
        String begin() throws IOException, InterruptedException;

        /** Ends the session of a URL. */
        void end(String calls) throws IOException, InterruptedException;
    }

    /** Plays for so long, and gives the calls that were sent in the last three quarters of it, in nanoseconds. */
    Histogram play(Target target, Duration duration) throws InterruptedException {
        Histogram nanos = new ConcurrentHistogram(3);
        long from = System.nanoTime();
        long until = from + duration.toNanos();
        long counted = from + duration.toNanos() / 4;
        each(agents, () -> {
            pause(); // or all would call at once
            while (System.nanoTime() < until) {
                session(target, until, counted, nanos);
            }
            return null;
        });
        return nanos;
    }

    /** Does something so many times, as many at once as there are agents. */
    void each(int times, Callable<?> work) throws InterruptedException {
        ExecutorService threads = Executors.newFixedThreadPool(agents);
        try {
            List<Future<?>> lanes = new ArrayList<>();
            for (int i = 0; i < times; i++) {
                lanes.add(threads.submit(work));
            }
            for (Future<?> lane : lanes) {
                lane.get();
            }
        } catch (ExecutionException e) {
            throw new LoadException("an agent failed: " + e.getMessage(), e);
        } finally {
            threads.shutdownNow();
        }
    }

    private void session(Target target, long until, long counted, Histogram nanos)
            throws IOException, InterruptedException {
        String calls = target.begin();
        List<Integer> prompt = new ArrayList<>();
        for (int turn = 0; turn < TURNS && System.nanoTime() < until; turn++) {
            for (int i = 0; i < ADDED_TOKENS; i++) {
                prompt.add(3 + (turn + i) % 10);
            }
            String body =
                    "{\"model\":\"policy\",\"max_tokens\":32,\"return_token_ids\":true,\"prompt\":" + prompt + "}";
            long sent = System.nanoTime();
            JsonNode answer = post(calls, body);
            if (sent > counted) {
                nanos.recordValue(System.nanoTime() - sent);
            }
            answer.at("/choices/0/token_ids").forEach(token -> prompt.add(token.intValue()));
            pause();
        }
        target.end(calls);
    }

    private void pause() throws InterruptedException {
        Thread.sleep(ThreadLocalRandom.current().nextLong(2 * thinkMs + 1));
    }

    /** Sends a call; what is refused is a failure. */
    JsonNode post(String url, String body) throws IOException, InterruptedException {
        HttpResponse<String> response = client.send(
                HttpRequest.newBuilder(URI.create(url))
                        .timeout(LIMIT)
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() >= 300) {
            throw new LoadException(url + " answered " + response.statusCode() + ": " + response.body());
        }
        return JSON.readTree(response.body());
    }
}
