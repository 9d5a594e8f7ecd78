package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.cli.sequences.BadLineException;
import dev.millrace.cli.sequences.LineFields;
import dev.millrace.replay.rewards.Verifier;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedInts;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A program of the user's that judges rollouts: it reads one JSON object a line and answers each with one, in their order.
 *
 * <p>Asked one after the other, whatever the number of threads. Closing ends the program.
 */
final class RewardCommand implements Verifier, AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String END = "";
    private static final Duration END_LIMIT = Duration.ofSeconds(5);

    private final String command;
    private final Optional<Tokenizer> tokenizer;
    private final Duration limit;
    private final Process process;
    private final BufferedWriter questions;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

    /**
     * Starts the program through the shell; what it writes to its error stream goes to ours.
     *
     * @param tokenizer of the run; empty where it is not at hand, and the program is told tokens alone
     * @param limit for each answer
     */
    RewardCommand(String command, Optional<Tokenizer> tokenizer, Duration limit) {
        this.command = command;
        this.tokenizer = tokenizer;
        this.limit = limit;
        try {
            this.process = new ProcessBuilder("/bin/sh", "-c", command)
                    .redirectError(ProcessBuilder.Redirect.INHERIT)
                    .start();
        } catch (IOException e) {
            throw new RefusedRequestException("--rewarder '" + command + "' cannot be started: " + e.getMessage(), e);
        }
        this.questions = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
        Thread reader = new Thread(this::read, "rewarder");
        reader.setDaemon(true);
        reader.start();
    }

    private void read() {
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!line.isBlank()) {
                    answers.add(line);
                }
            }
        } catch (IOException e) {
            // its end, which is said to whoever waits
        }
        answers.add(END);
    }

    @Override
    public synchronized Verdict verify(Trajectory rollout) {
        try {
            questions.write(JSON.writeValueAsString(question(rollout)));
            questions.newLine();
            questions.flush();
        } catch (IOException e) {
            throw ended(rollout, e);
        }
        String answer;
        try {
            answer = answers.poll(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RefusedRequestException("interrupted while --rewarder judged " + rollout.getRolloutId(), e);
        }
        if (answer == null) {
            throw new RefusedRequestException("--rewarder '" + command + "' has not answered about rollout "
                    + rollout.getRolloutId() + " within " + limit.toSeconds()
                    + " s; it must write one line for each that it reads, and flush it (--rewarder-timeout)");
        }
        if (answer.equals(END)) {
            throw ended(rollout, null);
        }
        try {
            ObjectNode line = LineFields.parsed(answer);
            String id = RewardLine.rolloutId(line);
            if (!id.equals(rollout.getRolloutId())) {
                throw new BadLineException(
                        "it is about rollout " + id + "; answers come in the order of the questions");
            }
            return RewardLine.verdict(line);
        } catch (BadLineException e) {
            throw new RefusedRequestException(
                    "--rewarder '" + command + "' answered about rollout " + rollout.getRolloutId()
                            + " with what is no verdict: " + e.getMessage(),
                    e);
        }
    }

    private RefusedRequestException ended(Trajectory rollout, @Nullable IOException cause) {
        String status;
        try {
            status = process.waitFor(END_LIMIT.toMillis(), TimeUnit.MILLISECONDS)
                    ? "ended with status " + process.exitValue()
                    : "has closed its output";
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            status = "has ended";
        }
        String sentence = "--rewarder '" + command + "' " + status + " before it said what rollout "
                + rollout.getRolloutId() + " is worth";
        return cause == null ? new RefusedRequestException(sentence) : new RefusedRequestException(sentence, cause);
    }

    private ObjectNode question(Trajectory rollout) {
        int[] prompt = PackedInts.toArray(rollout.getPromptTokens());
        int[] response = PackedInts.toArray(rollout.getResponseTokens());
        ObjectNode line = JSON.createObjectNode()
                .put("rollout_id", rollout.getRolloutId())
                .put("group_id", rollout.getGroupId())
                .put("finish_reason", rollout.getFinishReason())
                .put("reward", rollout.getReward());
        tokenizer.ifPresent(text -> line.put("prompt", text.decode(prompt)).put("response", text.text(response)));
        add(line.putArray("prompt_tokens"), prompt);
        add(line.putArray("response_tokens"), response);
        return line;
    }

    private static void add(ArrayNode list, int[] tokens) {
        for (int token : tokens) {
            list.add(token);
        }
    }

    @Override
    public void close() {
        try {
            questions.close(); // it reads the end of its input, and ends
            if (process.waitFor(END_LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                return;
            }
        } catch (IOException e) {
            // it has ended already, or is ended now
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
    }
}
