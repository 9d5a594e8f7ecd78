package dev.millrace.generator.environment.remote;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.EpisodeStart;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.StopRule;

/** A remote environment in a run's vocabulary. Thread-safe; asks nobody before its first episode is played. */
final class RemotePlayer implements Environment {
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
