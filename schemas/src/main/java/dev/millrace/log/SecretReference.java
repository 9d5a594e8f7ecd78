package dev.millrace.log;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.common.config.provider.ConfigProvider;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;
import org.jspecify.annotations.Nullable;

/**
 * A reference to a secret: {@code ${env:NAME}} or {@code ${file:PATH:KEY}}, in the grammar of Kafka's configuration providers,
 * which also read it.
 *
 * @param text with its braces
 * @param provider {@code env}, {@code file}, or one that the settings name in {@code config.providers}
 * @param path of a file; empty for the environment
 * @param key of a variable, or of an entry of the file
 */
record SecretReference(String text, String provider, String path, String key) {
    static final Pattern PATTERN = ConfigTransformer.DEFAULT_PATTERN;
    static final String ENV = "env";
    static final String FILE = "file";
    /** Looks like a reference and names no provider. */
    private static final Pattern BARE = Pattern.compile("\\$\\{([^}:]*)}");

    /**
     * All references in a text, in order.
     *
     * @throws SecretException if something looks like one and is none
     */
    static List<SecretReference> in(String setting, String text) {
        Matcher bare = BARE.matcher(text);
        if (bare.find()) {
            throw new SecretException(setting + " holds ${...} without a provider; write"
                    + " ${env:NAME} for a variable of the environment or ${file:PATH:KEY} for an entry of a file,"
                    + " also for a secret that contains these characters");
        }
        List<SecretReference> found = new ArrayList<>();
        Matcher reference = PATTERN.matcher(text);
        while (reference.find()) {
            String path = reference.group(3) == null ? "" : reference.group(3);
            found.add(new SecretReference(reference.group(), reference.group(1), path, reference.group(4)));
        }
        return found;
    }

    /** Replaces every reference of a text by what is found for it. */
    static String replaceAll(String text, UnaryOperator<String> found) {
        return PATTERN.matcher(text).replaceAll(match -> Matcher.quoteReplacement(found.apply(match.group())));
    }

    /**
     * The secret.
     *
     * @throws SecretException if there is none
     */
    String follow(String setting) {
        return switch (provider) {
            case ENV -> variable(setting);
            case FILE -> entry(setting);
            default ->
                throw new SecretException(refers(setting) + provider
                        + " is not a provider of secrets; write ${env:NAME} or ${file:PATH:KEY},"
                        + " or name a provider of your own in kafka.config.providers");
        };
    }

    private String variable(String setting) {
        if (!path.isEmpty()) {
            throw new SecretException(
                    refers(setting) + "an environment variable has a name and no path; write ${env:NAME}");
        }
        String value = read(setting, new EnvVarConfigProvider());
        if (value == null) {
            throw new SecretException(
                    refers(setting) + "there is no environment variable " + key + "; set it before the start");
        }
        return value;
    }

    private String entry(String setting) {
        if (path.isEmpty()) {
            throw new SecretException(refers(setting) + "the key of the file is missing; write ${file:PATH:KEY}");
        }
        Path file = Path.of(path);
        if (!Files.isRegularFile(file)) {
            throw new SecretException(refers(setting) + "there is no file " + path
                    + "; create it with a line key=value for each secret, or correct the path");
        }
        if (!Files.isReadable(file)) {
            throw new SecretException(refers(setting) + "the file " + path
                    + " cannot be read by this user; allow it, or name another file");
        }
        String value = read(setting, new FileConfigProvider());
        if (value == null) {
            throw new SecretException(
                    refers(setting) + "the file " + path + " has no key " + key + "; add it, or correct the key");
        }
        return value;
    }

    private @Nullable String read(String setting, ConfigProvider provider) {
        try (provider) {
            provider.configure(Map.of());
            return provider.get(path.isEmpty() ? null : path, Set.of(key))
                    .data()
                    .get(key);
        } catch (IOException | KafkaException | IllegalArgumentException e) {
            // a properties file that is none is told without its text
            throw new SecretException(
                    refers(setting) + "it cannot be read; see that it holds lines of the form key=value");
        }
    }

    private String refers(String setting) {
        return setting + " refers to " + text + ", and ";
    }
}
