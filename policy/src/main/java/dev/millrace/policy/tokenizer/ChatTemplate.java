package dev.millrace.policy.tokenizer;

import com.hubspot.jinjava.interpret.RenderResult;
import com.hubspot.jinjava.interpret.TemplateError;
import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Conversation;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.commons.codec.digest.DigestUtils;

/**
 * A chat template, as {@code chat_template.jinja} or {@code tokenizer_config.json} has it: a Jinja program that makes text of messages.
 *
 * <p>It sees messages, the names of the special tokens and a date, and nothing else of this process; what it may call, how many steps it may
 * take and how much it may write are bounded. It is rendered whole or refused: nothing that went wrong in it leaves half a prompt. Immutable
 * and thread-safe.
 */
public final class ChatTemplate {
    private static final Pattern CODE = Pattern.compile("\\{[%{].*?[%}]}", Pattern.DOTALL);
    /** A named argument that is a filtered value and a sum, which the library takes for a sum of a named argument. */
    private static final Pattern NAMED_SUM =
            Pattern.compile("([(,]\\s*\\w+\\s*=\\s*)(\\w+(?:\\.\\w+)*\\s*\\|\\s*\\w+\\s*[-+]\\s*\\w+)");

    private final String template;
    private final String place;
    private final Map<String, String> specialTokens;
    private final TemplateSandbox sandbox;
    private final String hash;

    /**
     * @param template the program
     * @param place where it stands, for a sentence
     * @param specialTokens by the names that templates have for them, such as {@code bos_token}
     * @param date what {@code strftime_now} prints; empty where the template is to do without
     * @throws IllegalArgumentException if it is nested too deeply
     */
    public ChatTemplate(String template, String place, Map<String, String> specialTokens, Optional<LocalDate> date) {
        this.template = understood(template);
        this.place = place;
        try {
            TemplateSandbox.requireParseable(this.template);
        } catch (TemplateSandbox.RefusedByTemplateException e) {
            throw new IllegalArgumentException(
                    "the chat template of " + place + " cannot be read: " + e.getMessage(), e);
        }
        this.specialTokens = Map.copyOf(specialTokens);
        this.sandbox = new TemplateSandbox(date);
        this.hash = DigestUtils.sha256Hex(template + "\n" + new TreeMap<>(specialTokens) + "\n"
                + date.map(LocalDate::toString).orElse(""));
    }

    /** The same program in the library's grammar: a file's last line end is none of the text, and two forms are written otherwise. */
    private static String understood(String template) {
        String text = template.endsWith("\n") ? template.substring(0, template.length() - 1) : template;
        return CODE.matcher(text)
                .replaceAll(code -> Matcher.quoteReplacement(NAMED_SUM
                        .matcher(code.group().replace("[::-1]", "|reverse"))
                        .replaceAll("$1($2)")));
    }

    /**
     * The conversation, up to where the assistant's answer begins.
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
     * The same of messages with more than a content, and of tools, which a template without an eye for them leaves out.
     *
     * @throws IllegalArgumentException as above
     */
    public String render(Conversation conversation) {
        Map<String, Object> context = new HashMap<>(specialTokens);
        context.put("messages", conversation.messages());
        if (!conversation.tools().isEmpty()) {
            context.put("tools", conversation.tools());
        }
        context.put("add_generation_prompt", true);
        RenderResult result = sandbox.render(template, context);
        if (!result.getErrors().isEmpty()) {
            throw refusal(result.getErrors());
        }
        return result.getOutput();
    }

    /** Lower-case hex sha-256 of the program, the special tokens and the date. */
    public String hash() {
        return hash;
    }

    private IllegalArgumentException refusal(List<TemplateError> errors) {
        for (TemplateError error : errors) {
            for (Throwable cause = error.getException(); cause != null; cause = cause.getCause()) {
                if (cause instanceof TemplateSandbox.RefusedByTemplateException refused) {
                    return new IllegalArgumentException(
                            "the chat template of " + place + " refuses the conversation: " + refused.getMessage(),
                            cause);
                }
            }
        }
        TemplateError first = errors.get(0);
        return new IllegalArgumentException(
                "the chat template of " + place + " cannot be rendered: " + first.getMessage() + " (line "
                        + first.getLineno() + "); write the rendered text as \"prompt\"",
                first.getException());
    }
}
