package dev.millrace.cli.tutorial;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A numbered tutorial: blocks of shell commands, each with what is to be seen after it.
 *
 * <p>A block is fenced as {@code sh}. Comments behind it, up to the next one, say what its output must contain ({@code expect:}),
 * which files it must leave ({@code file:}), and its exit status if that is not 0 ({@code exit:}).
 *
 * @param blocks in order
 */
record TutorialPage(List<Block> blocks) {
    private static final Pattern PART =
            Pattern.compile("```sh\\n(.*?)```|<!-- (expect|file|exit): (.*?) -->", Pattern.DOTALL);

    /** Commands of one block. */
    record Block(String commands, int exit, List<String> expected, List<String> files) {}

    static TutorialPage read(Path page) throws IOException {
        List<Block> blocks = new ArrayList<>();
        for (Matcher part = PART.matcher(Files.readString(page)); part.find(); ) {
            if (part.group(1) != null) {
                blocks.add(new Block(part.group(1), 0, new ArrayList<>(), new ArrayList<>()));
                continue;
            }
            Block last = blocks.get(blocks.size() - 1);
            switch (part.group(2)) {
                case "expect" -> last.expected().add(part.group(3));
                case "file" -> last.files().add(part.group(3));
                default ->
                    blocks.set(
                            blocks.size() - 1,
                            new Block(last.commands(), Integer.parseInt(part.group(3)), last.expected(), last.files()));
            }
        }
        return new TutorialPage(blocks);
    }
}
