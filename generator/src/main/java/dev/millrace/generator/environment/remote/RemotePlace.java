package dev.millrace.generator.environment.remote;

import java.net.URI;
import java.util.Map;

/**
 * Address or command of a partner, with limits.
 *
 * @param url of a server; empty where a command is asked
 * @param command for the shell; empty where a server is asked
 * @param tokenVariable name of the variable of the environment that holds a bearer token for the server; empty for none
 */
record RemotePlace(String url, String command, String tokenVariable, Limits limits) {

    /**
     * How long and how often to ask.
     *
     * @param timeoutMs longest wait for an answer
     * @param attempts how often a question is asked at most
     * @param patienceMs how long to retry an address that cannot be reached
     * @param concurrency questions under way at once; of a command, processes
     * @param answerBytes longest answer
     */
    record Limits(int timeoutMs, int attempts, int patienceMs, int concurrency, int answerBytes) {
        void check() {
            between("timeout_ms", timeoutMs, 1, 3_600_000);
            between("attempts", attempts, 1, 20);
            between("patience_ms", patienceMs, 0, 3_600_000);
            between("concurrency", concurrency, 1, 4_096);
            between("answer_bytes", answerBytes, 64, 64 << 20);
        }

        private static void between(String key, long value, long least, long most) {
            if (value < least || value > most) {
                throw new IllegalArgumentException(key + " must be from " + least + " to " + most + ": " + value);
            }
        }
    }

    /**
     * Checks the settings.
     *
     * @throws IllegalArgumentException beginning with the key
     */
    RemotePlace check(String... schemes) {
        if (!url.isEmpty() && !command.isEmpty()) {
            throw new IllegalArgumentException(
                    "url and command exclude each other: " + url + " and '" + command + "'; give one of them");
        }
        if (!url.isEmpty()) {
            checkUrl(schemes);
        }
        if (!tokenVariable.isEmpty() && !command.isEmpty()) {
            throw new IllegalArgumentException(
                    "token_variable is for a url, and a command inherits the environment variables: " + tokenVariable
                            + "; leave it out");
        }
        limits.check();
        return this;
    }

    private void checkUrl(String... schemes) {
        URI uri;
        try {
            uri = URI.create(url);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("url must be an address: '" + url + "': " + e.getMessage(), e);
        }
        boolean isKnown = false;
        for (String scheme : schemes) {
            isKnown |= scheme.equalsIgnoreCase(uri.getScheme());
        }
        if (!isKnown || uri.getHost() == null) {
            throw new IllegalArgumentException(
                    "url must begin with " + String.join(":// or ", schemes) + ":// and a host: '" + url + "'");
        }
        if (uri.getUserInfo() != null) {
            throw new IllegalArgumentException(
                    "url must hold no user and no password, which would be recorded; put a token into an"
                            + " environment variable and name it in token_variable");
        }
    }

    /** Whether somebody is named. A process that only looks at a run need not know whom to ask. */
    boolean isGiven() {
        return !url.isEmpty() || !command.isEmpty();
    }

    /**
     * Requires an address or a command.
     *
     * @param key of the settings, such as {@code reward}
     * @throws IllegalArgumentException with the way out; also if the token's variable is not there
     */
    void requireGiven(String key) {
        if (!isGiven()) {
            throw new IllegalArgumentException(key
                    + " is remote and has no address (a run does not record addresses and commands); give"
                    + " --set " + key + ".url=http://HOST:PORT/ or --set " + key
                    + ".command='python3 FILE.py'");
        }
        authorization(System.getenv());
    }

    /** The header's value; empty for none. */
    String authorization(Map<String, String> environment) {
        if (tokenVariable.isEmpty()) {
            return "";
        }
        String token = environment.getOrDefault(tokenVariable, "");
        if (token.isBlank() || token.chars().anyMatch(c -> c <= ' ' || c > '~')) {
            throw new IllegalArgumentException("token_variable is " + tokenVariable
                    + ", and that environment variable holds "
                    + (token.isBlank() ? "nothing" : "characters that no header allows") + "; set it before the start");
        }
        return "Bearer " + token;
    }

    /** For sentences. */
    String shown() {
        return url.isEmpty() ? "'" + command + "'" : url;
    }
}
