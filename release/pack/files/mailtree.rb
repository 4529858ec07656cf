class Mailtree < Formula
  desc "{{.About}}"
  homepage "{{.Repository}}"
  version "{{.Version}}"
  license "MIT"
{{range .Archives}}{{if ne .OS "freebsd"}}
  on_{{if eq .OS "darwin"}}macos{{else}}linux{{end}} do
    on_{{if eq .Arch "arm64"}}arm{{else}}intel{{end}} do
      url "{{$.Repository}}/releases/download/v{{$.Version}}/{{.Name}}"
      sha256 "{{.SHA256}}"
    end
  end
{{end}}{{end}}
  def install
    bin.install "mailtree"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/mailtree.bash" => "mailtree"
    zsh_completion.install "completions/_mailtree"
    fish_completion.install "completions/mailtree.fish"
    prefix.install "THIRD_PARTY_LICENSES"
  end

  service do
    run [opt_bin/"mailtree", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/mailtree version")
  end
end
