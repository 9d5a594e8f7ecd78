package dev.millrace.learner;

import dev.millrace.schemas.ServerRole;
import java.util.Collection;
import java.util.OptionalLong;

/**
 * The versions that are needed: all from the oldest version that
 *
 * <ul>
 *   <li>is among the newest {@code keep_versions},
 *   <li>a server serves or has a token of in flight, since that rollout will be scored under it,
 *   <li>sampled a rollout that is not scored yet,
 *   <li>is a fixed policy, such as the reference of a KL term, which a restart loads,
 *   <li>is the best version evaluated on held-out prompts, the result of the run.
 * </ul>
 *
 * <p>A scored rollout no longer needs weights: its log-probs are in its score.
 *
 * @param oldest the oldest version that is needed, at least 0
 * @param reason why that version is needed, as a clause
 */
record RetainedVersions(long oldest, String reason) {

    /**
     * @param newest   newest published version
     * @param keep     how many of the newest are kept in any case, at least 1
     * @param servers  those that may still be alive
     * @param fixed    versions that fixed policies are, such as the reference of a KL term
     * @param unscored oldest version of a rollout that is not scored yet
     * @param best     version with the highest reward on held-out prompts so far
     */
    static RetainedVersions of(
            long newest,
            int keep,
            Collection<Server> servers,
            Collection<Long> fixed,
            OptionalLong unscored,
            OptionalLong best) {
        RetainedVersions needed =
                new RetainedVersions(Math.max(0, newest - keep + 1), "the newest " + keep + " are kept");
        for (Server server : servers) {
            needed = needed.orOlder(
                    server.oldestVersion(),
                    server.name()
                            + (server.role() == ServerRole.EVALUATOR
                                    ? " evaluates it"
                                    : server.oldestVersion() < server.version()
                                            ? " has a sequence of it in flight"
                                            : " serves it"));
        }
        for (long version : fixed) {
            needed = needed.orOlder(version, "a fixed policy is that version");
        }
        if (best.isPresent()) {
            needed = needed.orOlder(best.getAsLong(), "it is the best on held-out prompts");
        }
        return unscored.isPresent()
                ? needed.orOlder(unscored.getAsLong(), "a rollout of it is not scored yet")
                : needed;
    }

    private RetainedVersions orOlder(long version, String why) {
        return version < oldest ? new RetainedVersions(Math.max(0, version), why) : this;
    }
}
