# Completes the words of a mailtree command by asking the program for them.
def "nu-complete mailtree" [spans: list<string>] {
    let begun = $spans | last
    let lines = ^mailtree __complete ...($spans | skip 1) | complete | get stdout | lines
    let how = $lines | last | str substring 1.. | into int # a sum of cobra's directives
    let flag = $begun | parse --regex '^(?<name>--[^=]+=)' | get 0?.name? | default ""
    let words = $lines | drop 1 | each {|line|
        let parts = $line | split row --number 2 "\t"
        {value: $"($flag)($parts.0)", description: ($parts.1? | default "")}
    } | where {|word| $word.value | str starts-with $begun }
    if ($words | is-empty) and ($how | bits and 4) == 0 { return null } # null: Nushell completes files
    $words
}

@complete "nu-complete mailtree"
export extern mailtree [...args: string]
