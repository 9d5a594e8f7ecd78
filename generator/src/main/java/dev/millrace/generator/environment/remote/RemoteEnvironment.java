package dev.millrace.generator.environment.remote;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.remote.RemotePlace.Limits;
import dev.millrace.generator.environment.text.StopRule;
import java.util.List;

/**
 * An environment of the user's own, in any language: a server, a command, or a server that speaks OpenEnv.
 *
 * <p>A turn of the policy ends with a stop token of its vocabulary or a text of {@code stop}. The environment receives the
 * turn's text; its answer precedes the next turn, until it ends the episode. Other sequences continue meanwhile.
 *
 * @param name name that prompts use: lower-case letters, digits and '-'
 * @param protocol protocol: {@code millrace} or {@code openenv}
 * @param url server, {@code http} or {@code https}; {@code ws} or {@code wss} for OpenEnv
 * @param command shell command that reads a question per line and writes an answer per line; replaces {@code url}
 * @param tokenVariable environment variable with the bearer token for {@code url}; empty for none
 * @param stop stop texts of a turn
 * @param frame template around the environment's text, such as a chat template's marks
 * @param actionField OpenEnv: action field that takes the policy's text
 * @param observationField OpenEnv: observation field that the policy reads; empty for the whole observation as JSON
 * @param timeoutMs timeout of an answer, 1 to 3600000
 * @param attempts tries per question, 1 to 20; only recognised questions are retried
 * @param patienceMs longest wait for an unreachable server before episodes fail, 0 to 3600000
 * @param concurrency concurrent questions, 1 to 4096; processes of a command, episodes of OpenEnv
 * @param answerBytes longest answer, 64 to 67108864
 */
public record RemoteEnvironment(
        String name,
        EnvironmentProtocol protocol,
        String url,
        String command,
        String tokenVariable,
        List<String> stop,
        String frame,
        String actionField,
        String observationField,
        int timeoutMs,
        int attempts,
        int patienceMs,
        int concurrency,
        int answerBytes)
        implements Environment {
    private static final String TEXT = "{text}";

    public RemoteEnvironment {
        stop = List.copyOf(stop);
        if (!name.matches("[a-z0-9-]+")) {
            throw new IllegalArgumentException("name must be lower-case letters, digits and '-': '" + name + "'");
        }
        if (stop.contains("")) {
            throw new IllegalArgumentException("stop must have texts of at least one character: one is empty");
        }
        if (frame.indexOf(TEXT) < 0 || frame.indexOf(TEXT) != frame.lastIndexOf(TEXT)) {
            throw new IllegalArgumentException(
                    "frame must hold " + TEXT + " once, the placeholder of the environment's text: '" + frame + "'");
        }
        if (protocol == null) {
            throw new IllegalArgumentException("protocol must be millrace or openenv: null");
        }
        RemotePlace place = new RemotePlace(
                url, command, tokenVariable, new Limits(timeoutMs, attempts, patienceMs, concurrency, answerBytes));
        if (protocol == EnvironmentProtocol.OPENENV) {
            if (!command.isEmpty()) {
                throw new IllegalArgumentException("command is '" + command
                        + "', and OpenEnv needs a WebSocket; give its url, or set protocol to millrace");
            }
            if (actionField.isBlank()) {
                throw new IllegalArgumentException(
                        "action_field must name the field of OpenEnv's action that takes the policy's text");
            }
            place.check("ws", "wss");
        } else {
            place.check("http", "https");
        }
    }

    /** Nobody yet; 30 s, three times, 64 at once. */
    public static RemoteEnvironment defaults() {
        return new RemoteEnvironment(
                "remote",
                EnvironmentProtocol.MILLRACE,
                "",
                "",
                "",
                List.of(),
                TEXT,
                "message",
                "",
                30_000,
                3,
                60_000,
                64,
                1 << 20);
    }

    RemotePlace place() {
        return new RemotePlace(
                url, command, tokenVariable, new Limits(timeoutMs, attempts, patienceMs, concurrency, answerBytes));
    }

    String framed(String text) {
        return frame.replace(TEXT, text);
    }

    /**
     * Requires an address or a command; called by a process that plays, before it starts.
     *
     * @param key of these settings
     * @throws IllegalArgumentException with the way out
     */
    public void requireGiven(String key) {
        place().requireGiven(key);
    }

    @Override
    public int endToken() {
        return -1;
    }

    @Override
    public Environment in(Tokenizer tokenizer) {
        return new RemotePlayer(this, tokenizer);
    }

    @Override
    public void requirePlayable(String state) {}

    @Override
    public Episode begin(String state) {
        throw new IllegalStateException("it needs a vocabulary, and was given none");
    }

    /** A remote environment in a run's vocabulary. Thread-safe; asks nobody before its first episode is played. */
    static final class RemotePlayer implements Environment {
        private final RemoteEnvironment settings;
        private final Tokenizer tokenizer;
        private final StopRule turnEnd;

        RemotePlayer(RemoteEnvironment settings, Tokenizer tokenizer) {
            this.settings = settings;
            this.tokenizer = tokenizer;
            this.turnEnd = new StopRule(
                    tokenizer.stopTokens().stream().mapToInt(Integer::intValue).toArray(), settings.stop(), tokenizer);
        }

        @Override
        public String name() {
            return settings.name();
        }

        @Override
        public int endToken() {
            return -1; // a stop token ends a turn; the environment ends the response
        }

        @Override
        public Environment in(Tokenizer other) {
            return settings.in(other);
        }

        @Override
        public void requirePlayable(String state) {}

        @Override
        public Episode begin(String state) {
            return begin(new EpisodeStart("", new int[0], state));
        }

        @Override
        public Episode begin(EpisodeStart start) {
            return new RemoteEpisode(settings, tokenizer, turnEnd, start);
        }
    }
}
