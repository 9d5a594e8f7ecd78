package dev.millrace.policy.tokenizer;

import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Conversation;
import dev.millrace.policy.jinja.Template;
import dev.millrace.policy.jinja.TemplateException;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * A chat template, as {@code chat_template.jinja} or {@code tokenizer_config.json} has it: a Jinja program that renders
 * messages to the same text as {@code transformers}.
 *
 * <p>It has access to messages, special tokens and a date only; its functions, steps and output are bounded. It renders
 * a whole prompt or throws. Immutable and thread-safe.
 */
public final class ChatTemplate {
    private static final Map<Character, String> DATE_FORMATS = Map.of(
            'd', "dd", 'b', "MMM", 'B', "MMMM", 'Y', "yyyy", 'm', "MM", 'y', "yy", 'A', "EEEE", 'a', "EEE", 'j', "DDD");

    private final Template template;
    private final String place;
    private final Map<String, String> specialTokens;
    private final Optional<LocalDate> date;
    private final String hash;

    /**
     * @param specialTokens by the names that templates use, such as {@code bos_token}
     * @param date output of {@code strftime_now}; empty for none
     * @throws IllegalArgumentException if it cannot be read
     */
    public ChatTemplate(String template, String place, Map<String, String> specialTokens, Optional<LocalDate> date) {
        this.place = place;
        try {
            this.template = new Template(template);
        } catch (TemplateException e) {
            throw new IllegalArgumentException(
                    "the chat template of " + place + " cannot be read: " + e.getMessage(), e);
        }
        this.specialTokens = Map.copyOf(specialTokens);
        this.date = date;
        this.hash = DigestUtils.sha256Hex(template + "\n" + new TreeMap<>(specialTokens) + "\n"
                + date.map(LocalDate::toString).orElse(""));
    }

    /**
     * Renders a conversation up to the start of the assistant's answer.
     *
     * @throws IllegalArgumentException if the template refuses the conversation, or cannot be rendered within its bounds
     */
    public String render(List<ChatMessage> messages) {
        List<Map<String, Object>> seen = new ArrayList<>();
        for (ChatMessage message : messages) {
            Map<String, Object> fields = new LinkedHashMap<>();
            fields.put("role", message.role());
            fields.put("content", message.content());
            seen.add(fields);
        }
        return render(new Conversation(seen, List.of()));
    }

    /**
     * As above, with further message fields and tools, which a template may ignore.
     *
     * @throws IllegalArgumentException as above
     */
    public String render(Conversation conversation) {
        Map<String, @Nullable Object> context = new HashMap<>(specialTokens);
        context.put("messages", conversation.messages());
        context.put("tools", conversation.tools().isEmpty() ? null : conversation.tools());
        context.put("documents", null);
        context.put("add_generation_prompt", true);
        date.ifPresent(day -> context.put("strftime_now", (Template.Function) arguments -> formatted(day, arguments)));
        try {
            return template.render(context);
        } catch (TemplateException.RaisedException e) {
            throw new IllegalArgumentException(
                    "the chat template of " + place + " refuses the conversation: " + e.getMessage(), e);
        } catch (TemplateException e) {
            throw new IllegalArgumentException(
                    "the chat template of " + place + " cannot be rendered: " + e.getMessage()
                            + "; write the rendered text as \"prompt\"",
                    e);
        }
    }

    /** A date as {@code strftime} formats it. */
    private static String formatted(LocalDate date, List<@Nullable Object> arguments) {
        String format = arguments.size() == 1 ? String.valueOf(arguments.get(0)) : "";
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < format.length(); i++) {
            if (format.charAt(i) != '%') {
                text.append(format.charAt(i));
                continue;
            }
            String pattern = ++i < format.length() ? DATE_FORMATS.get(format.charAt(i)) : null;
            if (pattern == null) {
                throw new IllegalArgumentException("it asks for the time as '" + format
                        + "', and of dates only %d %b %B %Y %m %y %A %a %j are known");
            }
            text.append(date.format(DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH)));
        }
        return text.toString();
    }

    /** Lower-case hex sha-256 of the program, the special tokens and the date. */
    public String hash() {
        return hash;
    }
}
