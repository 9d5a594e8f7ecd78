package dev.millrace.log;

import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;

/**
 * The text of a setting that may hold a secret: as it was written, and as it may be shown.
 *
 * <p>Both have references as they are, {@code ${env:NAME}}, since a reference is no secret. What is secret by itself is
 * {@code [hidden]} in the second, which is also what {@link #toString} gives. Two are equal if they were written alike.
 * Immutable.
 */
public final class SecretText {
    /** What stands for a secret in a copy; Kafka's own word. */
    public static final String HIDDEN = Password.HIDDEN;

    private static final Pattern JAAS_OPTION =
            Pattern.compile("([\\w.]+)\\s*=\\s*(\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|[^\\s;\"']+)");
    private static final Pattern JAAS_REST = Pattern.compile(
            "\\s*[\\w.$]+\\s+(required|requisite|sufficient|optional)\\s*;?\\s*", Pattern.CASE_INSENSITIVE);
    /** Options of login modules that name somebody or something, and open nothing. */
    private static final Set<String> JAAS_SHOWN = Set.of(
            "username",
            "principal",
            "servicename",
            "keytab",
            "usekeytab",
            "storekey",
            "useticketcache",
            "ticketcache",
            "renewtgt",
            "donotprompt",
            "refreshkrb5config",
            "isinitiator",
            "debug",
            "tokenauth");

    /** Greedy, because a password may hold what should have been escaped. */
    private static final Pattern ADDRESS = Pattern.compile("([A-Za-z][A-Za-z0-9+.-]*://)(.*)@", Pattern.DOTALL);

    private static final Pattern QUERY = Pattern.compile("([?&][^=&#\\s]*=)([^&#\\s]*)");
    private static final Pattern USER_INFO = Pattern.compile("([^:]*):(.*)", Pattern.DOTALL);

    private final String written;
    private final String shown;

    private SecretText(String written, String shown) {
        this.written = written;
        this.shown = shown;
    }

    /**
     * The text of a client setting, whose name says whether it is secret.
     *
     * @param name as Kafka's clients know it, such as {@code ssl.keystore.password}; it may begin with a kind of client
     */
    public static SecretText ofSetting(String name, String written) {
        return new SecretText(written, SecretNames.holdSecret(name) ? shownSecret(name, written) : shown(written));
    }

    /** The text of an address whose credentials are secret: {@code https://user:password@host}. */
    public static SecretText ofAddress(String written) {
        return new SecretText(written, shown(written));
    }

    /** A text that is secret under any name, except references in it: the value of a header. */
    public static SecretText ofSecret(String written) {
        return new SecretText(written, isHarmless(written) ? written : HIDDEN);
    }

    /** As it was written, for the client that it is meant for and for nothing else; references are still references. */
    public String written() {
        return written;
    }

    /** As it may be written anywhere. */
    public String shown() {
        return shown;
    }

    public boolean isEmpty() {
        return written.isEmpty();
    }

    /** Whether this is a copy from which a secret was left out, so that no client could be made with it. */
    public boolean isIncomplete() {
        return written.contains(HIDDEN);
    }

    private static String shownSecret(String name, String written) {
        if (isHarmless(written)) {
            return written;
        }
        if (SecretNames.isJaas(name)) {
            return shownJaas(written);
        }
        return SecretNames.isUserInfo(name) ? shownUserInfo(written) : HIDDEN;
    }

    private static String shownJaas(String written) {
        if (!JAAS_REST.matcher(JAAS_OPTION.matcher(written).replaceAll("")).matches()) {
            return HIDDEN; // no line that Kafka would take, so nothing says which part of it is secret
        }
        return JAAS_OPTION
                .matcher(written)
                .replaceAll(option -> Matcher.quoteReplacement(
                        JAAS_SHOWN.contains(option.group(1).toLowerCase(Locale.ROOT))
                                        || isHarmless(unquoted(option.group(2)))
                                ? option.group()
                                : option.group(1) + "=\"" + HIDDEN + "\""));
    }

    private static String unquoted(String value) {
        char first = value.charAt(0);
        return first == '"' || first == '\'' ? value.substring(1, value.length() - 1) : value;
    }

    private static String shown(String written) {
        String withoutUser = ADDRESS.matcher(written)
                .replaceAll(
                        address -> Matcher.quoteReplacement(address.group(1) + shownUserInfo(address.group(2)) + "@"));
        return withoutUser.contains("://") ? QUERY.matcher(withoutUser).replaceAll(SecretText::parameter) : withoutUser;
    }

    private static String parameter(MatchResult parameter) {
        String name = parameter.group(1);
        boolean shown = !SecretNames.holdSecret(name.substring(1, name.length() - 1)) || isHarmless(parameter.group(2));
        return Matcher.quoteReplacement(shown ? parameter.group() : name + HIDDEN);
    }

    /** {@code user:password} without the password; what has no colon may be a token. */
    private static String shownUserInfo(String written) {
        if (isHarmless(written)) {
            return written;
        }
        // a reference has colons too, so they are set aside before the user is told from the password
        Matcher user = USER_INFO.matcher(SecretReference.PATTERN
                .matcher(written)
                .replaceAll(found -> "\0".repeat(found.group().length())));
        if (!user.matches()) {
            return HIDDEN;
        }
        int colon = user.end(1);
        String password = written.substring(colon + 1);
        return written.substring(0, colon) + ":" + (isHarmless(password) ? password : HIDDEN);
    }

    /** Whether it is nothing but references, or what a copy has in place of a secret. */
    private static boolean isHarmless(String text) {
        return SecretReference.PATTERN
                .matcher(text)
                .replaceAll("")
                .replace(HIDDEN, "")
                .isBlank();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SecretText text && text.written.equals(written);
    }

    @Override
    public int hashCode() {
        return written.hashCode();
    }

    @Override
    public String toString() {
        return shown;
    }

    /**
     * Which settings of Kafka's clients, and of what plugs into them, hold secrets.
     *
     * <p>Kafka says it of its own settings by their type. Of others the name decides, rather once too often than once too seldom.
     */
    static final class SecretNames {
        private static final Map<String, Boolean> OF_KAFKA = Stream.of(
                        ConsumerConfig.configDef(), ProducerConfig.configDef(), AdminClientConfig.configDef())
                .flatMap(definition -> definition.configKeys().values().stream())
                .collect(Collectors.toUnmodifiableMap(
                        key -> key.name, key -> key.type == ConfigDef.Type.PASSWORD, (one, other) -> one || other));

        private static final Pattern SUSPECT = Pattern.compile(
                "password|passwd|passphrase|secret|credential|token|api[._-]?key|private[._-]?key|access[._-]?key"
                        + "|user[._-]?info|authorization",
                Pattern.CASE_INSENSITIVE);

        private SecretNames() {}

        /** @param name as configured; may begin with a kind of client: {@code producer.ssl.key.password} */
        static boolean holdSecret(String name) {
            for (String bare = name; ; bare = bare.substring(bare.indexOf('.') + 1)) {
                Boolean secret = OF_KAFKA.get(bare);
                if (secret != null) {
                    return secret;
                }
                if (bare.indexOf('.') < 0) {
                    return SUSPECT.matcher(name).find();
                }
            }
        }

        /** Whether it is a JAAS line; parts of it may be shown. */
        static boolean isJaas(String name) {
            return name.endsWith("sasl.jaas.config");
        }

        /** Whether it is {@code user:password}; the user may be shown. */
        static boolean isUserInfo(String name) {
            return name.endsWith("user.info");
        }
    }
}
