package dev.millrace.generator.environment.text;

import java.util.List;

/**
 * What data and tokenizer were found to be when a run began, by which every process of the run has the same, or says what differs. It is
 * filled where the run begins; nobody needs to write it.
 *
 * @param dataSha256 of all rows of the data
 * @param rows how many of them are trained on
 * @param evalSha256 of all rows of a file of held-out prompts; empty where there is none
 * @param evalRows how many rows are held out
 * @param promptTokens of the longest prompt, held-out ones included
 * @param tokenizerSha256 of all that decides which tokens a text has
 * @param chatSha256 of all that decides how a conversation becomes text; empty without a chat template
 * @param vocabulary tokens of the model
 * @param stopTokens that end a response
 * @param contents the tokenizer's files, which lie on the run's log: of each the SHA-256 and the name, as {@code sha256sum} writes them;
 *     empty where the tokenizer is a plug-in's
 */
public record TextFiles(
        String dataSha256,
        int rows,
        String evalSha256,
        int evalRows,
        int promptTokens,
        String tokenizerSha256,
        String chatSha256,
        int vocabulary,
        List<Long> stopTokens,
        List<String> contents) {

    public TextFiles {
        stopTokens = List.copyOf(stopTokens);
        contents = List.copyOf(contents);
    }

    /** Nothing found yet. */
    public static TextFiles unknown() {
        return new TextFiles("", 0, "", 0, 0, "", "", 0, List.of(), List.of());
    }

    boolean isKnown() {
        return rows > 0 && promptTokens > 0 && vocabulary > 1;
    }
}
