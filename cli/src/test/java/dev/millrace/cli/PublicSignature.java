package dev.millrace.cli;

import java.lang.reflect.AnnotatedType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * What a type offers to those who compile against it, as sorted lines: one for the type and one for each public or
 * protected member. A {@code ?} behind a type says that it may be null. What every record and enum has is left out.
 */
final class PublicSignature {
    private static final Set<String> OF_EVERY_OBJECT = Set.of("equals(java.lang.Object)", "hashCode()", "toString()");
    private static final Set<String> OF_EVERY_ENUM = Set.of("values()", "valueOf(java.lang.String)");

    private PublicSignature() {}

    /** One text, ending in a line feed; empty if the type is not to be seen from outside of its package. */
    static List<String> of(Class<?> type) {
        if (!isVisible(type) || type.isAnonymousClass() || type.isLocalClass() || type.isSynthetic()) {
            return List.of();
        }
        List<String> members = new ArrayList<>();
        for (Field field : type.getDeclaredFields()) {
            if (isOffered(field.getModifiers(), field.isSynthetic())) {
                members.add(words(field.getModifiers()) + text(field.getAnnotatedType(), field.getGenericType()) + " "
                        + field.getName());
            }
        }
        for (Constructor<?> constructor : type.getDeclaredConstructors()) {
            if (isOffered(constructor.getModifiers(), constructor.isSynthetic())) {
                members.add(words(constructor.getModifiers())
                        + type.getSimpleName()
                        + parameters(constructor)
                        + exceptions(constructor));
            }
        }
        for (Method method : type.getDeclaredMethods()) {
            if (isOffered(method.getModifiers(), method.isSynthetic()) && !isEverywhere(type, method)) {
                members.add(words(method.getModifiers() & ~Modifier.TRANSIENT & ~Modifier.VOLATILE)
                        + variables(method.getTypeParameters())
                        + text(method.getAnnotatedReturnType(), method.getGenericReturnType()) + " " + method.getName()
                        + parameters(method) + exceptions(method));
            }
        }
        return List.of(members.stream()
                .sorted()
                .map(member -> "    " + member + "\n")
                .collect(Collectors.joining("", head(type) + "\n", "")));
    }

    private static boolean isVisible(Class<?> type) {
        return isOffered(type.getModifiers(), false)
                && Optional.<Class<?>>ofNullable(type.getEnclosingClass())
                        .map(PublicSignature::isVisible)
                        .orElse(true);
    }

    private static boolean isOffered(int modifiers, boolean isSynthetic) {
        return !isSynthetic && (Modifier.isPublic(modifiers) || Modifier.isProtected(modifiers));
    }

    private static boolean isEverywhere(Class<?> type, Method method) {
        String name = method.getName() + parameters(method);
        return OF_EVERY_OBJECT.contains(name) || type.isEnum() && OF_EVERY_ENUM.contains(name);
    }

    private static String head(Class<?> type) {
        String kind = type.isAnnotation()
                ? "@interface"
                : type.isInterface() ? "interface" : type.isEnum() ? "enum" : type.isRecord() ? "record" : "class";
        int implied = type.isInterface() ? Modifier.ABSTRACT : type.isEnum() || type.isRecord() ? Modifier.FINAL : 0;
        String components = type.isRecord()
                ? Arrays.stream(type.getRecordComponents())
                        .map(component -> text(component.getAnnotatedType(), component.getGenericType()) + " "
                                + component.getName())
                        .collect(Collectors.joining(", ", "(", ")"))
                : "";
        String parent = type.getGenericSuperclass() == null
                        || Set.of(Object.class, Record.class).contains(type.getSuperclass())
                        || type.isEnum()
                ? ""
                : " extends " + type.getGenericSuperclass().getTypeName();
        return words(type.getModifiers() & ~implied & ~Modifier.STATIC) + (type.isSealed() ? "sealed " : "") + kind
                + " "
                + type.getName() + variables(type.getTypeParameters()).strip() + components + parent
                + list(type.isInterface() ? " extends " : " implements ", Stream.of(type.getGenericInterfaces()));
    }

    private static String words(int modifiers) {
        String words = Modifier.toString(modifiers & ~Modifier.INTERFACE & ~Modifier.SYNCHRONIZED & ~Modifier.NATIVE);
        return words.isEmpty() ? "" : words + " ";
    }

    private static String parameters(Executable of) {
        return Stream.of(of.getParameters()).map(PublicSignature::text).collect(Collectors.joining(", ", "(", ")"));
    }

    private static String text(Parameter parameter) {
        return text(parameter.getAnnotatedType(), parameter.getParameterizedType());
    }

    private static String text(AnnotatedType annotated, Type type) {
        return type.getTypeName() + (annotated.isAnnotationPresent(Nullable.class) ? "?" : "");
    }

    private static String variables(TypeVariable<?>[] variables) {
        return variables.length == 0
                ? ""
                : Stream.of(variables)
                        .map(variable -> variable.getName() + bounds(variable))
                        .collect(Collectors.joining(", ", "<", "> "));
    }

    private static String bounds(TypeVariable<?> variable) {
        return list(" extends ", Stream.of(variable.getBounds()).filter(bound -> bound != Object.class));
    }

    private static String exceptions(Executable of) {
        return list(" throws ", Stream.of(of.getGenericExceptionTypes()));
    }

    private static String list(String before, Stream<Type> types) {
        String list = types.map(Type::getTypeName).sorted().collect(Collectors.joining(", "));
        return list.isEmpty() ? "" : before + list;
    }
}
