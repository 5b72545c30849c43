package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/url"

	"toolbay"
)

const size = 16

type WeatherArgs struct {
	City string `json:"city" description:"The city."`
}

type Weather struct {
	City        string  `json:"city"`
	Temperature float64 `json:"temperature" description:"In °C."`
}

func weather(ctx *toolbay.Context, args WeatherArgs) (Weather, error) {
	found := Weather{}
	service, _ := ctx.Config("service")
	request := toolbay.HTTPRequest{URL: service + "/weather?city=" + url.QueryEscape(args.City)}
	response, err := request.Send()
	if err != nil {
		return found, err
	}
	defer response.Body.Close()
	if response.Status != 200 {
		return found, fmt.Errorf("the service answered with status %d", response.Status)
	}
	err = json.NewDecoder(response.Body).Decode(&found)
	return found, err
}

type RememberArgs struct {
	Key   string `json:"key" description:"The name of the value."`
	Value string `json:"value" description:"The value."`
}

func remember(_ *toolbay.Context, args RememberArgs) (string, error) {
	memory, err := toolbay.OpenBucket("memory")
	if err != nil {
		return "", err
	}
	defer memory.Close()
	before, has, err := memory.Get(args.Key)
	if err != nil {
		return "", err
	}
	if !has {
		before = []byte("nothing")
	}
	return string(before), memory.Set(args.Key, []byte(args.Value))
}

type IndexArgs struct {
	Files []string `json:"files" description:"The names of the files."`
}

func index(ctx *toolbay.Context, args IndexArgs) (string, error) {
	for done, file := range args.Files {
		ctx.Progress(float64(done+1), float64(len(args.Files)), file)
	}
	return fmt.Sprintf("%d files are indexed", len(args.Files)), nil
}

type Confirmation struct {
	Yes bool `json:"yes" description:"Really delete it?"`
}

func deleteAll(ctx *toolbay.Context, _ struct{}) (string, error) {
	sure, err := toolbay.Ask(ctx, "sure", toolbay.Form[Confirmation]{Message: "This deletes everything."})
	if err != nil || sure.Action != toolbay.Accepted || !sure.Content.Yes {
		return "nothing was deleted", err
	}
	return "deleted", nil
}

type SwatchArgs struct {
	Red   uint8 `json:"red" description:"The level of red."`
	Green uint8 `json:"green" description:"The level of green."`
	Blue  uint8 `json:"blue" description:"The level of blue."`
}

func swatch(_ *toolbay.Context, args SwatchArgs) (toolbay.Content, error) {
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	fill := color.RGBA{args.Red, args.Green, args.Blue, 255}
	draw.Draw(picture, picture.Bounds(), image.NewUniform(fill), image.Point{}, draw.Src)
	var file bytes.Buffer
	err := png.Encode(&file, picture)
	return toolbay.Image(file.Bytes(), "image/png"), err
}

func init() {
	toolbay.Tool("get_weather", "Returns the temperature in a city.", weather, toolbay.ReadOnly(true))
	toolbay.Tool("remember", "Remembers a value, and returns the one that it replaces.", remember)
	toolbay.Tool("index_files", "Indexes files, and reports its progress.", index, toolbay.ReadOnly(true))
	toolbay.Tool("delete_all", "Deletes everything, if the user agrees.", deleteAll, toolbay.Destructive(true))
	toolbay.Tool("draw_swatch", "Draws a square of one color.", swatch, toolbay.ReadOnly(true))
}

func main() {}
