package dev.millrace.log;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.provider.EnvVarConfigProvider;
import org.apache.kafka.common.config.provider.FileConfigProvider;

/**
 * What is done with secrets when a connection is made: clients of Kafka are given the references and the providers that
 * follow them, an address is given what they lead to. Thread-safe.
 */
public final class SecretSettings {
    private static final String PROVIDERS = AbstractConfig.CONFIG_PROVIDERS_CONFIG;
    private static final Map<String, String> OURS = Map.of(
            SecretReference.ENV, EnvVarConfigProvider.class.getName(),
            SecretReference.FILE, FileConfigProvider.class.getName());

    private SecretSettings() {}

    /**
     * Client settings that let Kafka's clients resolve their secrets. Resolves every reference once, so that a dangling one
     * fails here and not as a failed login later, and forgets the values.
     *
     * @param prefix of the names in sentences, such as {@code kafka.}
     * @return as they were written, and the providers
     * @throws SecretException if a reference leads nowhere, or a secret is {@code [hidden]}
     */
    public static Map<String, String> forClients(Map<String, SecretText> settings, String prefix) {
        Map<String, String> written = new HashMap<>();
        settings.forEach((name, text) -> written.put(name, text.written()));
        Set<String> theirs = names(written.getOrDefault(PROVIDERS, ""));
        Set<String> named = new LinkedHashSet<>(theirs);
        settings.forEach((name, text) -> {
            requireComplete(prefix + name, text);
            for (SecretReference reference : SecretReference.in(prefix + name, text.written())) {
                if (!theirs.contains(reference.provider())) { // a provider of the user's own is his to try
                    reference.follow(prefix + name);
                    named.add(reference.provider());
                }
            }
        });
        if (named.size() > theirs.size()) {
            written.put(PROVIDERS, String.join(",", named));
            named.stream()
                    .filter(name -> !theirs.contains(name))
                    .forEach(name -> written.put(PROVIDERS + "." + name + ".class", OURS.get(name)));
        }
        return written;
    }

    /**
     * An address with its secrets in it, for the client that is made with it and for nothing else. What a reference before
     * the {@code @} leads to is escaped, so that any password will do.
     *
     * @throws SecretException as for clients
     */
    public static String address(String setting, String written) {
        requireComplete(setting, SecretText.ofAddress(written));
        List<SecretReference> references = SecretReference.in(setting, written);
        if (references.size() == 1 && references.get(0).text().equals(written.strip())) {
            return references.get(0).follow(setting);
        }
        int credentialsEnd = written.lastIndexOf('@');
        Map<String, String> found = new HashMap<>();
        for (SecretReference reference : references) {
            String secret = reference.follow(setting);
            found.put(
                    reference.text(),
                    written.indexOf(reference.text()) < credentialsEnd
                            ? URLEncoder.encode(secret, StandardCharsets.UTF_8)
                            : secret);
        }
        return SecretReference.replaceAll(written, found::get);
    }

    /**
     * A text with its secrets in it, for the client that it is meant for and for nothing else.
     *
     * @throws SecretException as for clients
     */
    public static String text(String setting, SecretText text) {
        requireComplete(setting, text);
        Map<String, String> found = new HashMap<>();
        for (SecretReference reference : SecretReference.in(setting, text.written())) {
            found.put(reference.text(), reference.follow(setting));
        }
        return SecretReference.replaceAll(text.written(), found::get);
    }

    /** Client settings as they may be shown: for a {@code toString}. */
    public static Map<String, Object> shown(Map<String, Object> settings) {
        Map<String, Object> shown = new HashMap<>();
        settings.forEach((name, value) ->
                shown.put(name, value instanceof String text ? SecretText.ofSetting(name, text) : value));
        return shown;
    }

    private static void requireComplete(String setting, SecretText text) {
        if (text.isIncomplete()) {
            throw new SecretException(setting + " is " + text.shown()
                    + ": a recorded configuration keeps no literal secret; give it again with --config or --set "
                    + setting + "=..., or as a reference, ${env:NAME} or ${file:PATH:KEY}, which is recorded");
        }
    }

    private static Set<String> names(String providers) {
        Set<String> names = new LinkedHashSet<>();
        for (String name : providers.split(",")) {
            if (!name.isBlank()) {
                names.add(name.strip());
            }
        }
        return names;
    }
}
